/** Unsaved changes, stored in the browser together with the entity tag of the version that was edited. */

import { Exact } from "../json.js";
import { changedNames, isHidden, pick, Unparsed } from "./values.js";

/** @typedef {import("../model.js").Attribute} Attribute */

/**
 * @typedef {object} Kept
 * @property {string} etag
 * @property {string} at  The time at which the changes were typed.
 * @property {Record<string, any>} base  The previous values of the changed attributes.
 * @property {Record<string, any>} values  The typed values.
 */

/**
 * Return the key under which the unsaved changes of a document are stored.
 * @param {import("../model.js").Model} model
 * @param {import("../model.js").Type} type
 * @param {string} id  The document's id, or "" for a new document.
 * @param {string} locale
 */
export function placeOf(model, type, id, locale) {
  return ["bifolio-unsaved", model.caller.kind, model.caller.name, type.uid, id, locale].join("/");
}

/**
 * Return the stored changes, or null if there are none.
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
 * Store the changed values. If nothing has changed, delete the stored changes. Passwords and private values are never
 * stored.
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
    // The browser stores nothing or has no space left. The form still contains the changes.
  }
}

/**
 * Return whether an attribute contains a value that is never displayed and must therefore not be stored.
 * @param {import("../model.js").Model} model
 * @param {Attribute} attribute
 * @param {string[]} above  The components that contain the attribute.
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
    // If the browser stores nothing, there is nothing to delete.
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
