/** Unsaved work, kept in the browser under the ETag of the version that it was made from. */

import { changedNames, isHidden, pick, Unparsed } from "./values.js";

/**
 * @typedef {object} Kept
 * @property {string} etag
 * @property {string} at  When it was typed.
 * @property {Record<string, any>} base  What the attributes held that were changed.
 * @property {Record<string, any>} values  What was typed.
 */

/**
 * The place of a document's unsaved work.
 * @param {import("../model.js").Model} model
 * @param {import("../model.js").Type} type
 * @param {string} id  "" for a new one.
 * @param {string} locale
 */
export function placeOf(model, type, id, locale) {
  return ["quire-unsaved", model.caller.kind, model.caller.name, type.uid, id, locale].join("/");
}

/**
 * What is kept at a place, null where there is nothing.
 * @param {string} place
 * @returns {Kept | null}
 */
export function readKept(place) {
  try {
    const text = localStorage.getItem(place);
    return text ? JSON.parse(text, revive) : null;
  } catch {
    return null; // a browser that keeps nothing, or something else that is there
  }
}

/**
 * Keep what has changed, or nothing where nothing has. Passwords and the like are never kept.
 * @param {string} place
 * @param {Record<string, import("../model.js").Attribute>} attributes
 * @param {{etag: string, base: Record<string, any>, values: Record<string, any>}} state
 */
export function keep(place, attributes, { etag, base, values }) {
  const names = changedNames(base, values).filter((name) => !isHidden(attributes[name]));
  if (!names.length) return forget(place);
  const kept = { etag, at: new Date().toISOString(), base: pick(base, names), values: pick(values, names) };
  try {
    localStorage.setItem(place, JSON.stringify(kept, replace));
  } catch {
    // A browser that keeps nothing, or has no room: the form itself still has it.
  }
}

/** @param {string} place */
export function forget(place) {
  try {
    localStorage.removeItem(place);
  } catch {
    // There is nothing to forget then.
  }
}

/** @param {string} _ @param {any} value */
const replace = (_, value) => (value instanceof Unparsed ? { __unparsed: value.text, why: value.why } : value);

/** @param {string} _ @param {any} value */
const revive = (_, value) =>
  value && typeof value === "object" && "__unparsed" in value ? new Unparsed(value.__unparsed, value.why) : value;
