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
 * Return the same key for a content type that may have been deleted.
 * @param {import("../model.js").Model} model
 * @param {string} name
 * @param {string} id
 * @param {string} locale
 */
export function placeOfDeleted(model, name, id, locale) {
  return placeOf(model, /** @type {any} */ ({ uid: `api::${name}.${name}` }), id, locale);
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
 * Store the changed values, and the values of attributes that no longer exist. If there are none, delete the stored
 * changes. Passwords and private values are never stored.
 * @param {string} place
 * @param {{etag: string, base: Record<string, any>, values: Record<string, any>, lost: Record<string, any>}} state
 */
export function keep(place, { etag, base, values, lost }) {
  const names = changedNames(base, values).filter((name) => !isSecret(place, name));
  if (!names.length && !Object.keys(lost).length) return forget(place);
  const typed = { ...lost, ...pick(values, names) };
  const kept = { etag, at: new Date().toISOString(), base: pick(base, names), values: typed };
  try {
    localStorage.setItem(place, JSON.stringify(kept, replace));
  } catch {
    // The browser stores nothing or has no space left. The form still contains the changes.
  }
}

/**
 * The attributes whose values must not be stored, each after the key of its document or the uid of its component. They
 * stay known when a content type or component loses them.
 */
const secrets = new Set();

/**
 * Remember which attributes must not be stored.
 * @param {string} place
 * @param {import("../model.js").Model} model
 * @param {Record<string, Attribute>} attributes
 */
export function noteSecrets(place, model, attributes) {
  for (const [name, attribute] of Object.entries(attributes)) {
    if (holdsHidden(model, attribute)) secrets.add(`${place} ${name}`);
  }
  for (const [uid, component] of Object.entries(model.components)) {
    for (const [name, attribute] of Object.entries(component.attributes)) {
      if (holdsHidden(model, attribute)) secrets.add(`${uid} ${name}`);
    }
  }
}

/** @param {string} place  The key of a document, or the uid of a component. @param {string} name */
export const isSecret = (place, name) => secrets.has(`${place} ${name}`);

/**
 * Return the stored values of attributes that no longer exist.
 * The values in components are by path.
 * @param {string} place
 * @param {Record<string, Attribute>} attributes
 */
export function lostAt(place, attributes) {
  const values = readKept(place)?.values ?? {};
  return pick(values, Object.keys(values).filter((name) => !(name in attributes)));
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
