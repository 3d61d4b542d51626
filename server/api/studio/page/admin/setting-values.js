/** Settings as texts in a form, and the values that these texts stand for. */

import { t, translated } from "../language.js";
import { inSentence, labelOf } from "../text.js";

/** The values of settings that are chosen from a list. */
const CHOICES = /** @type {Record<string, string[]>} */ ({
  flag: ["true", "false"],
  choice: ["reject", "allow"],
  format: ["v5", "v4"],
});

/**
 * @typedef {object} Field
 * @property {string} key
 * @property {string} label
 * @property {any} setting
 * @property {string} text  The value in site.yaml as text, or "" if it is not set.
 * @property {string} hint
 * @property {string[]} choices
 * @property {boolean} isFixed  Whether the value has a form that the field can't show.
 */

/**
 * Return the fields for all settings that can be changed.
 * @param {any[]} settings
 * @returns {Field[]}
 */
export function fieldsOf(settings) {
  return settings.filter(({ editable }) => editable).map(fieldOf);
}

/**
 * @param {any} setting
 * @returns {Field}
 */
function fieldOf(setting) {
  const { key, value, type } = setting;
  const help = translated(`help:${key}`, setting.description);
  const hint = `${help}${setting.restart ? ` ${t`A change requires a restart of the server.`}` : ""}`;
  const isList = Array.isArray(value);
  const isFixed = value !== null && typeof value === "object" && !isList;
  const text = value === null || isFixed ? "" : isList ? value.join(", ") : String(value);
  const label = translated(`setting:${key}`, labelFor(key));
  return { key, label, setting, text, hint, choices: CHOICES[type] ?? [], isFixed };
}

/**
 * Return the value that a text stands for: null for the default, or a number, boolean, list or text.
 * @param {Field} field
 * @param {string} text
 */
export function parsedValue({ setting }, text) {
  const plain = text.trim();
  if (!plain) return null;
  if (setting.type === "locales") return plain.split(/[\s,]+/).filter(Boolean);
  if (setting.type === "flag") return plain === "true";
  const isNumber = /^\d+$/.test(plain) && (setting.type === "count" || setting.type === "keep");
  return isNumber ? Number(plain) : plain;
}

/** @param {string} key */
function labelFor(key) {
  const parts = key.split(".");
  const [last, section] = [parts[parts.length - 1], parts[parts.length - 2] ?? ""];
  const words = labelOf(last);
  return ["locales", "page_size", "limits", "events", "branches"].includes(section)
    ? `${labelOf(section)}: ${inSentence(words)}`
    : words;
}
