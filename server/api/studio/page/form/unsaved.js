/** Unsaved work, kept in the browser under the ETag of the version that it was made from. */

import { Exact } from "../json.js";
import { changedNames, isHidden, pick, Unparsed } from "./values.js";

/** @typedef {import("../model.js").Attribute} Attribute */

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
  return ["bifolio-unsaved", model.caller.kind, model.caller.name, type.uid, id, locale].join("/");
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
 * @param {import("../model.js").Model} model
 * @param {Record<string, Attribute>} attributes
 * @param {{etag: string, base: Record<string, any>, values: Record<string, any>}} state
 */
export function keep(place, model, attributes, { etag, base, values }) {
  const names = changedNames(base, values).filter((name) => !holdsHidden(model, attributes[name]));
  if (!names.length) return forget(place);
  const kept = { etag, at: new Date().toISOString(), base: pick(base, names), values: pick(values, names) };
  try {
    localStorage.setItem(place, JSON.stringify(kept, replace));
  } catch {
    // A browser that keeps nothing, or has no room: the form itself still has it.
  }
}

/**
 * Whether something in an attribute is never shown, and so never kept.
 * @param {import("../model.js").Model} model
 * @param {Attribute} attribute
 * @param {string[]} above  The components that it is in.
 * @returns {boolean}
 */
function holdsHidden(model, attribute, above = []) {
  if (isHidden(attribute)) return true;
  const inner = attribute.component ? [attribute.component] : (attribute.components ?? []);
  return inner.some((uid) => {
    const within = above.includes(uid) ? {} : (model.components[uid]?.attributes ?? {});
    return Object.values(within).some((one) => holdsHidden(model, one, [...above, uid]));
  });
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
function replace(_, value) {
  if (value instanceof Unparsed) return { __unparsed: value.text, why: value.why };
  return value instanceof Exact ? { __exact: value.text } : value;
}

/** @param {string} _ @param {any} value */
function revive(_, value) {
  if (!value || typeof value !== "object") return value;
  if ("__unparsed" in value) return new Unparsed(value.__unparsed, value.why);
  return "__exact" in value ? new Exact(value.__exact) : value;
}
