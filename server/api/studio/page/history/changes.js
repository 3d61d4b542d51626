/**
 * Returns the differences in an attribute as rows with two sides. For components, there is one row for each attribute
 * that differs.
 */

import { labelOf } from "../text.js";
import { same } from "../form/values.js";
import { parseJson, writeJson } from "../json.js";
import { componentOf, holdsComponents, itemsOf, listOf, outlineOf, textOf, wordsOfBlocks } from "./readable.js";
import { changesOf, textParts } from "./words.js";

/**
 * @typedef {import("../model.js").Model} Model
 * @typedef {import("../model.js").Attribute} Attribute
 * @typedef {import("./comparison.js").Known} Known
 * @typedef {import("./readable.js").Item} Item
 * @typedef {import("./words.js").Part} Part
 */

/**
 * @typedef {object} Row  One difference.
 * @property {string[]} path  The labels of the components and attributes that contain the difference.
 * @property {Part[]} left  The unchanged and the removed parts.
 * @property {Part[]} right  The unchanged and the added parts.
 * @property {"text" | "code" | "items"} kind
 */

/**
 * @param {{model: Model, known: Known}} site
 * @param {Attribute} attribute
 * @param {any} from
 * @param {any} to
 * @param {string[]} [path]
 * @returns {Row[]}
 */
export function rowsOf(site, attribute, from, to, path = []) {
  const { model, known } = site;
  const [before, after] = [from, to].map((value) => itemsOf(attribute, value, model, known));
  if (before && after) return [itemRow(before, after, path)];
  if (holdsComponents(attribute)) return componentRows(site, attribute, listOf(from), listOf(to), path);
  if (attribute.type === "blocks") {
    const [old, now] = [wordsOfBlocks(from), wordsOfBlocks(to)];
    if (old !== now) return [textRow(old, now, path, "text")];
  }
  const isCode = ["json", "array", "blocks"].includes(attribute.type);
  return [textRow(textOf(attribute, from), textOf(attribute, to), path, isCode ? "code" : "text")];
}

/** @param {string} before @param {string} after @param {string[]} path @param {"text" | "code"} kind @returns {Row} */
function textRow(before, after, path, kind) {
  const parts = textParts(before, after);
  // Text that only one side has becomes an empty part on the other side, so that both sides are shortened at the same
  // places.
  const without = (/** @type {Part["kind"]} */ kind) => {
    return parts.map((part) => (part.kind === kind ? { kind, text: "" } : part));
  };
  return { path, kind, left: without("added"), right: without("removed") };
}

/**
 * @param {import("./readable.js").Item[]} before
 * @param {import("./readable.js").Item[]} after
 * @param {string[]} path
 * @returns {Row}
 */
function itemRow(before, after, path) {
  const words = (/** @type {Item} */ item) => item.text + (item.gone ? " (deleted)" : "");
  const told = new Map([...before, ...after].map((item) => [item.key, words(item)]));
  const parts = (/** @type {Part["kind"]} */ kind, /** @type {string[]} */ keys) => {
    return keys.map((key) => ({ kind, text: told.get(key) ?? key }));
  };
  const changes = changesOf(before.map(({ key }) => key), after.map(({ key }) => key));
  return {
    path,
    kind: "items",
    left: changes.flatMap(({ kind, old }) => parts(kind === "same" ? "same" : "removed", old)),
    right: changes.flatMap(({ kind, now }) => parts(kind === "same" ? "same" : "added", now)),
  };
}

/**
 * @param {{model: Model, known: Known}} site
 * @param {Attribute} attribute
 * @param {any[]} before
 * @param {any[]} after
 * @param {string[]} path
 * @returns {Row[]}
 */
function componentRows(site, attribute, before, after, path) {
  const many = attribute.type === "dynamiczone" || attribute.repeatable === true;
  let place = 0;
  /** @type {Row[]} */
  const rows = [];
  const [left, right] = [before, after].map((items) => items.map((item) => writeJson(item)));
  for (const { kind, old, now } of changesOf(left, right)) {
    const count = Math.max(old.length, now.length);
    for (let i = 0; kind === "changed" && i < count; i++) {
      const pair = [old[i], now[i]].map((text) => (text === undefined ? null : parseJson(text)));
      const label = componentOf(site.model, attribute, pair[1] ?? pair[0]).label;
      const within = many ? [...path, `${label} ${place + i + 1}`] : path;
      rows.push(...pairRows(site, attribute, pair[0], pair[1], within));
    }
    place += now.length;
  }
  return rows;
}

/**
 * Return the rows for two components at the same position, or for a component that was added or removed.
 * @param {{model: Model, known: Known}} site
 * @param {Attribute} attribute
 * @param {any} old
 * @param {any} now
 * @param {string[]} path
 * @returns {Row[]}
 */
function pairRows(site, attribute, old, now, path) {
  if (!old || !now || old.__component !== now.__component) {
    const [before, after] = [old, now].map((item) => (item ? outlineOf(site.model, attribute, item, site.known) : ""));
    return [textRow(before, after, path, "text")];
  }
  return Object.entries(componentOf(site.model, attribute, now).attributes).flatMap(([name, inner]) => {
    if (same(old[name], now[name])) return [];
    return rowsOf(site, inner, old[name] ?? null, now[name] ?? null, [...path, labelOf(name)]);
  });
}
