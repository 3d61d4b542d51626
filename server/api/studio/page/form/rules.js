/**
 * Validates values with the options in the schema before they are sent, as the server does. The server validates them
 * again.
 */

import { t } from "../language.js";
import { isList } from "./shape.js";
import { isEmpty, Unparsed, UNSEEN } from "./values.js";

/**
 * @typedef {import("../model.js").Attribute} Attribute
 * @typedef {{path: string[], message: string}} Fault  The message is a sentence without the attribute's name.
 */

const LONGEST_STRING = 255; // characters, where the schema does not say
const UID = /^[A-Za-z0-9\-_.~]*$/;
const EMAIL = /^[^\s@]+@[^\s@]+\.[^\s@]+$/;

/**
 * Return the errors in some values. For a draft, only types and upper limits are checked, so that incomplete drafts can
 * be saved.
 * @param {import("../model.js").Model} model
 * @param {Record<string, Attribute>} attributes
 * @param {Record<string, any>} values
 * @param {{draft: boolean}} how
 * @param {string[]} [path]
 * @returns {Fault[]}
 */
export function faultsOf(model, attributes, values, how, path = []) {
  return Object.entries(attributes).flatMap(([name, attribute]) => {
    const value = values[name];
    if (value === UNSEEN) return [];
    const here = sentencesOf(attribute, value, how).map((message) => ({ path: [...path, name], message }));
    if (attribute.type !== "component" && attribute.type !== "dynamiczone") return here;
    const items = isList(attribute) ? (value ?? []) : value ? [value] : [];
    const inner = items.map((/** @type {any} */ item, /** @type {number} */ index) => {
      const within = model.components[item.__component ?? attribute.component]?.attributes ?? {};
      const at = isList(attribute) ? [...path, name, String(index)] : [...path, name];
      return faultsOf(model, within, item, how, at);
    });
    return [...here, ...inner.flat()];
  });
}

/**
 * @param {Attribute} attribute
 * @param {any} value
 * @param {{draft: boolean}} how
 * @returns {string[]}
 */
function sentencesOf(attribute, value, { draft }) {
  if (value instanceof Unparsed) return [value.why];
  const holdsNothing = isEmpty(value) || (isList(attribute) && !value.length);
  if (holdsNothing) return attribute.required && !attribute.mappedBy && !draft ? [t`is required`] : [];
  if (isList(attribute)) return draft ? [] : sizes(attribute, value.length);
  if (typeof value === "string") {
    const broken = lengths(attribute, value, draft);
    return draft ? broken : [...broken, ...patterns(attribute, value)];
  }
  return typeof value === "number" ? bounds(attribute, value, draft) : [];
}

/** @param {Attribute} attribute @param {string} value @param {boolean} draft */
function lengths(attribute, value, draft) {
  const length = [...value].length;
  const most = attribute.maxLength ?? (attribute.type === "string" ? LONGEST_STRING : Infinity);
  const least = draft ? 0 : (attribute.minLength ?? 0);
  if (attribute.type === "biginteger" || attribute.type === "decimal") return bounds(attribute, Number(value), draft);
  if (length > most) return [t`must be at most ${most} characters`];
  return length < least ? [t`must be at least ${least} characters`] : [];
}

/** @param {Attribute} attribute @param {number} value @param {boolean} draft */
function bounds(attribute, value, draft) {
  const { min, max } = attribute;
  if (max !== undefined && value > Number(max)) return [t`must be less than or equal to ${max}`];
  if (min !== undefined && !draft && value < Number(min)) return [t`must be greater than or equal to ${min}`];
  return [];
}

/** @param {Attribute} attribute @param {number} size */
function sizes({ min, max }, size) {
  if (max !== undefined && size > Number(max)) return [t`must have at most ${max} entries`];
  return min !== undefined && size < Number(min) ? [t`must have at least ${min} entries`] : [];
}

/** @param {Attribute} attribute @param {string} value */
function patterns(attribute, value) {
  if (attribute.type === "email" && !EMAIL.test(value)) return [t`must be a valid email`];
  if (attribute.type === "uid" && !UID.test(value)) return [t`may contain only letters, digits and - _ . ~`];
  if (!attribute.regex) return [];
  try {
    return new RegExp(attribute.regex).test(value) ? [] : [t`must match ${attribute.regex}`];
  } catch {
    return []; // a pattern of another dialect: the server says
  }
}

/**
 * Return the errors in a response from the server, or its message if it contains no list of errors.
 * @param {import("../api.js").ApiError} error
 * @returns {Fault[]}
 */
export function faultsIn(error) {
  const told = error.details?.errors;
  if (!Array.isArray(told)) return error.details?.path ? [{ path: pathOf(error), message: error.message }] : [];
  return told.map(({ path, message }) => ({ path, message: withoutName(path, message) }));
}

/** @param {import("../api.js").ApiError} error */
function pathOf(error) {
  return String(error.details.path).split(".");
}

/**
 * @param {string[]} path
 * @param {string} message  The message, such as "sections[0].title is required".
 */
function withoutName(path, message) {
  const dotted = path.map((part) => (/^\d+$/.test(part) ? `[${part}]` : `.${part}`)).join("").slice(1);
  return message.startsWith(`${dotted} `) ? message.slice(dotted.length + 1) : message;
}
