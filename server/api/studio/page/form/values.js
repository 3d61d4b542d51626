/** The values of a document in a form: what was read, what was typed, and what of it differs. */

/**
 * @typedef {Record<string, any>} Values  By the names of attributes, as the API has them.
 * @typedef {import("../model.js").Attribute} Attribute
 */

/** What somebody has typed that is no value of its type yet. */
export class Unparsed {
  /**
   * @param {string} text
   * @param {string} why  What it has to be: "must be a number".
   */
  constructor(text, why) {
    this.text = text;
    this.why = why;
  }
}

/** @param {any} value */
export const isEmpty = (value) => value === null || value === undefined || value === "";

/** Types whose values the server never shows. */
const HIDDEN = new Set(["password"]);

/**
 * Whether what an attribute holds can be written but not read.
 * @param {Attribute} attribute
 */
export const isHidden = (attribute) => HIDDEN.has(attribute.type) || attribute.private === true;

/** What a form holds of such an attribute, for as long as nobody replaces or clears it. */
export const UNSEEN = Symbol("not shown");

/**
 * A value without what is not shown of it, for a document that does not have that.
 * @param {any} value
 * @returns {any}
 */
export function withoutUnseen(value) {
  if (value === UNSEEN) return null;
  if (Array.isArray(value)) return value.map(withoutUnseen);
  if (!value || Object.getPrototypeOf(value) !== Object.prototype) return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, withoutUnseen(inner)]));
}

/** What a form adds to values, to show them: it counts for nothing where they are compared. */
const OF_FORM = new Set(["__title", "__alt", "__preview", "__temp_key__", "__id"]);

/**
 * Whether two values are the same. An empty text is as good as none; the order of keys does not count.
 * @param {any} a
 * @param {any} b
 * @returns {boolean}
 */
export function same(a, b) {
  if (a === b || (isEmpty(a) && isEmpty(b))) return true;
  if (typeof a !== "object" || typeof b !== "object" || isEmpty(a) || isEmpty(b)) return false;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const keys = new Set([...Object.keys(a), ...Object.keys(b)]);
  return [...keys].every((key) => OF_FORM.has(key) || same(a[key], b[key]));
}

/**
 * The names of the attributes whose values differ.
 * @param {Values} base
 * @param {Values} values
 */
export function changedNames(base, values) {
  return Object.keys(values).filter((name) => !same(base[name], values[name]));
}

/**
 * Some of the values, by name.
 * @param {Values} values
 * @param {string[]} names
 * @returns {Values}
 */
export function pick(values, names) {
  return Object.fromEntries(names.map((name) => [name, values[name] ?? null]));
}

/**
 * @typedef {object} Rebased
 * @property {Values} base
 * @property {Values} values
 * @property {Values} theirs  What somebody else has made of attributes that were changed here as well.
 */

/**
 * What was typed, on top of a version that somebody else has written meanwhile: what was not touched here is
 * theirs; what they did not touch is ours; of what both have changed, ours stays, and theirs is told beside it.
 * @param {Values} base
 * @param {Values} values
 * @param {Values} fresh
 * @param {Values} [known]  What was told of theirs before, and nobody has chosen yet.
 * @returns {Rebased}
 */
export function rebase(base, values, fresh, known = {}) {
  const ours = new Set(changedNames(base, values));
  const merged = { ...fresh };
  /** @type {Values} */
  const theirs = {};
  for (const name of ours) {
    merged[name] = values[name];
    const theyChanged = name in known || !same(base[name], fresh[name]);
    if (theyChanged && !same(values[name], fresh[name])) theirs[name] = fresh[name];
  }
  return { base: fresh, values: merged, theirs };
}
