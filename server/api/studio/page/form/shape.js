/**
 * Converts values between the API and a form. In a form, relations and media are ids with a title, and components
 * contain values of their own.
 */

import { Exact, withNumbers } from "../json.js";
import { fileOf } from "../media/file.js";
import { isEmpty, isHidden, same, UNSEEN } from "./values.js";

/**
 * @typedef {import("../model.js").Attribute} Attribute
 * @typedef {import("../model.js").Model} Model
 * @typedef {Record<string, Attribute>} Attributes
 */

const TO_ONE = new Set(["oneToOne", "manyToOne", "morphOne", "morphToOne"]);
/** Types that contain any JSON. Their numbers must stay exactly as written. */
const OF_JSON = new Set(["json", "array"]);
const OF_FILES = ["name", "url", "alternativeText", "mime", "formats", "updatedAt"];

/**
 * Return whether the value of an attribute is a list of targets or components.
 * @param {Attribute} attribute
 */
export function isList({ type, relation, multiple, repeatable }) {
  if (type === "relation") return !TO_ONE.has(relation ?? "");
  return type === "dynamiczone" || (type === "media" ? multiple === true : type === "component" && repeatable === true);
}

/**
 * Return the title attribute of a relation's target type.
 * @param {Model} model
 * @param {Attribute} attribute
 */
export const titleField = (model, attribute) => model.types.find(({ uid }) => uid === attribute.target)?.title ?? null;

const DEEPEST = 6; // components in components, where they may hold themselves

/**
 * Return the `populate` parameter for everything that a form displays.
 * @param {Model} model
 * @param {Attributes} attributes
 * @param {number} [depth]
 * @returns {any}
 */
export function populateOf(model, attributes, depth = 0) {
  if (depth > DEEPEST) return undefined;
  const parts = Object.entries(attributes).flatMap(([name, attribute]) => {
    const part = isHidden(attribute) ? null : populateOne(model, attribute, depth);
    return part ? [[name, part]] : [];
  });
  return parts.length ? Object.fromEntries(parts) : undefined;
}

/** @param {Model} model @param {Attribute} attribute @param {number} depth */
function populateOne(model, attribute, depth) {
  const within = (/** @type {string} */ uid) => {
    const populate = populateOf(model, model.components[uid]?.attributes ?? {}, depth + 1);
    return populate ? { populate } : true;
  };
  if (attribute.type === "relation" && attribute.target) {
    return { fields: [titleField(model, attribute) ?? "documentId"] };
  }
  if (attribute.type === "relation") {
    return { on: Object.fromEntries(model.listed.map(({ uid, title }) => [uid, { fields: [title ?? "documentId"] }])) };
  }
  if (attribute.type === "media") return { fields: OF_FILES };
  if (attribute.type === "component") return within(attribute.component ?? "");
  if (attribute.type !== "dynamiczone") return null;
  return { on: Object.fromEntries((attribute.components ?? []).map((uid) => [uid, within(uid)])) };
}

/**
 * Convert a value from an API response to the form's representation.
 * @param {Model} model
 * @param {Attribute} attribute
 * @param {any} value
 * @returns {any}
 */
export function readValue(model, attribute, value) {
  if (isHidden(attribute)) return UNSEEN;
  if (isList(attribute)) return (value ?? []).map((/** @type {any} */ item) => readOne(model, attribute, item));
  return isEmpty(value) ? null : readOne(model, attribute, value);
}

/** @param {Model} model @param {Attribute} attribute @param {any} item */
function readOne(model, attribute, item) {
  if (attribute.type === "relation") {
    const { __type: uid = attribute.target, documentId } = item;
    const title = titleField(model, { ...attribute, target: uid });
    const kind = attribute.target ? {} : { __type: uid };
    return { documentId, ...kind, __title: String((title && item[title]) || documentId) };
  }
  if (attribute.type === "media") return fileOf(item);
  const uid = item?.__component ?? attribute.component;
  const within = uid && model.components[uid];
  if (!within) return readPlain(attribute, item);
  const isThere = item.id !== undefined; // else it is put back from the history, which shows no more of it
  const values = Object.entries(within.attributes).map(([name, inner]) => {
    return [name, isThere || !isHidden(inner) ? readValue(model, inner, item[name]) : null];
  });
  const kind = item.__component ? { __component: item.__component } : {};
  return { id: item.id, ...kind, ...Object.fromEntries(values) };
}

/** @param {Attribute} attribute @param {any} value */
function readPlain({ type }, value) {
  if (OF_JSON.has(type)) return value;
  return type === "decimal" && value instanceof Exact ? value.text : withNumbers(value);
}

/**
 * Return a list of components that was read again. Each keeps the key under which it is displayed, because ids depend
 * on the position.
 * @param {Attribute} attribute
 * @param {any} shown
 * @param {any} value
 */
export function keepKeys({ type }, shown, value) {
  if (type !== "component" && type !== "dynamiczone") return value;
  if (!Array.isArray(shown) || !Array.isArray(value) || shown.length !== value.length) return value;
  return value.map((item, index) => ({ ...item, __temp_key__: shown[index].__temp_key__ ?? shown[index].id }));
}

/**
 * Convert a form's value to the form that the API accepts. For existing components, only changes are included.
 * @param {Model} model
 * @param {Attribute} attribute
 * @param {any} base  The previous value.
 * @param {any} value
 * @returns {any}
 */
export function sentValue(model, attribute, base, value) {
  if (value === UNSEEN) return undefined;
  if (base === UNSEEN) return sentValue(model, attribute, null, value);
  if (attribute.type === "relation" && isList(attribute) && base) return sentLinks(base, value ?? []);
  if (isList(attribute)) {
    return (value ?? []).map((/** @type {any} */ item) => sentOne(model, attribute, base ?? [], item));
  }
  return isEmpty(value) ? null : sentOne(model, attribute, isEmpty(base) ? [] : [base], value);
}

/**
 * Return the changes to a list of relations as `connect` and `disconnect`. Targets that others add, or that the user
 * may not see, are then preserved. If the order has changed, return the whole list.
 * @param {any[]} base
 * @param {any[]} value
 */
function sentLinks(base, value) {
  const [before, after] = [base, value].map((list) => list.map(sentTarget));
  const has = (/** @type {any[]} */ list, /** @type {any} */ target) => list.some((one) => same(one, target));
  const connect = after.filter((target) => !has(before, target));
  const disconnect = before.filter((target) => !has(after, target));
  const kept = before.filter((target) => has(after, target));
  return same([...kept, ...connect], after) ? { connect, disconnect } : after;
}

/**
 * Return the identifier of a relation's target. It includes the type if the relation is to any type.
 * @param {any} target
 */
const sentTarget = ({ __type, documentId }) => (__type ? { __type, documentId } : documentId);

/** @param {Model} model @param {Attribute} attribute @param {any[]} held @param {any} item */
function sentOne(model, attribute, held, item) {
  if (attribute.type === "relation" || attribute.type === "media") return sentTarget(item);
  const uid = item?.__component ?? attribute.component;
  const within = uid && model.components[uid];
  if (!within) return item;
  const before = held.find(({ id, __component }) => id === item.id && __component === item.__component);
  const names = Object.keys(within.attributes).filter((name) => {
    return before ? !same(before[name], item[name]) : !isEmpty(item[name]) && item[name] !== UNSEEN;
  });
  const values = names.map((name) => [name, sentValue(model, within.attributes[name], before?.[name], item[name])]);
  const kind = item.__component ? { __component: item.__component } : {};
  return { ...(before ? { id: item.id } : {}), ...kind, ...Object.fromEntries(values) };
}

let made = 0;

/**
 * Return a new component with the default values of its attributes.
 * @param {Model} model
 * @param {string} uid
 * @param {boolean} inZone
 */
export function newComponent(model, uid, inZone) {
  const attributes = model.components[uid]?.attributes ?? {};
  const begun = (/** @type {Attribute} */ inner) => inner.default ?? (isList(inner) ? [] : null);
  const values = Object.entries(attributes).map(([name, inner]) => [name, begun(inner)]);
  return { __temp_key__: `new-${++made}`, ...(inZone ? { __component: uid } : {}), ...Object.fromEntries(values) };
}
