/** The values of a document in a form: comparing and merging values that were read or typed. */

/**
 * @typedef {Record<string, any>} Values  Values by attribute name, as in the API.
 * @typedef {import("../model.js").Attribute} Attribute
 */

/** A typed text that is not a valid value of its type. */
export class Unparsed {
  /**
   * @param {string} text
   * @param {string} why  The requirement, such as "must be a number".
   */
  constructor(text, why) {
    this.text = text;
    this.why = why;
  }
}

/** @param {any} value */
export const isEmpty = (value) => value === null || value === undefined || value === "";

/** Types whose values the server never returns. */
const HIDDEN = new Set(["password"]);

/**
 * Return whether the value of an attribute can be written but not read.
 * @param {Attribute} attribute
 */
export const isHidden = (attribute) => HIDDEN.has(attribute.type) || attribute.private === true;

/** The form's value for such an attribute, as long as the user neither replaces nor clears it. */
export const UNSEEN = Symbol("not shown");

/**
 * Return a copy of a value without such placeholders, for a document that does not have the hidden values.
 * @param {any} value
 * @returns {any}
 */
export function withoutUnseen(value) {
  if (value === UNSEEN) return null;
  if (Array.isArray(value)) return value.map(withoutUnseen);
  if (!value || Object.getPrototypeOf(value) !== Object.prototype) return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, withoutUnseen(inner)]));
}

/** Properties that a form adds to values for display. They are ignored in comparisons. */
const OF_FORM = new Set(["__title", "__alt", "__preview", "__url", "__version", "__temp_key__", "__id"]);

/** Keys of a component that are not attributes. @param {string} key */
export const isOfForm = (key) => OF_FORM.has(key) || key === "id" || key === "__component";

/**
 * Return whether two values are equal. An empty text equals a missing value, and the order of keys is ignored.
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
 * Return the names of the attributes whose values differ.
 * @param {Values} base
 * @param {Values} values
 */
export function changedNames(base, values) {
  return Object.keys(values).filter((name) => !same(base[name], values[name]));
}

/**
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
 * @property {Values} theirs  Values that others have saved for attributes that the user has changed, too.
 * @property {Values} lost  The user's values of attributes that no longer exist.
 */

/**
 * Apply the user's changes to a version that someone else has written. Attributes that the user has not changed get the
 * new values. Attributes that only the user has changed keep the user's values. Attributes that both have changed keep
 * the user's values, too, and the other values are returned in `theirs`. Attributes that the user has changed, but that
 * the content type no longer has, are returned in `lost`.
 * @param {Values} base
 * @param {Values} values
 * @param {Values} fresh
 * @param {Values} [known]  Earlier values in `theirs` between which the user has not chosen yet.
 * @returns {Rebased}
 */
export function rebase(base, values, fresh, known = {}) {
  const ours = new Set(changedNames(base, values));
  const merged = { ...fresh };
  /** @type {Values[]} */
  const [theirs, lost] = [{}, {}];
  for (const name of ours) {
    if (!(name in fresh)) {
      lost[name] = values[name];
      continue;
    }
    merged[name] = values[name];
    const theyChanged = name in known || !same(base[name], fresh[name]);
    if (theyChanged && !same(values[name], fresh[name])) theirs[name] = fresh[name];
  }
  return { base: fresh, values: merged, theirs, lost };
}
