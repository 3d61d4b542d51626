/** Adapts the components in a form after a component or dynamic zone has changed its attributes. */

import { isSecret } from "./unsaved.js";
import { isHidden, isOfForm, same } from "./values.js";

/**
 * @typedef {import("../model.js").Attribute} Attribute
 * @typedef {import("./resource.js").FormResource} FormResource
 * @typedef {import("./values.js").Values} Values
 */

/** Types into which a number can be retyped. */
const TEXTS = new Set(["string", "text", "richtext"]);

/**
 * Return values whose components have the attributes of the current schema, and whose numbers are texts where the
 * schema now has texts. Attributes that are new get the values of
 * the version that was read last, so that they do not count as changed by the user.
 * @param {Pick<FormResource, "model" | "attributes">} resource
 * @param {Values} values
 * @param {Values} fresh
 * @returns {Values}
 */
export function reshaped({ model, attributes }, values, fresh) {
  /** @param {Attribute} attribute @param {any} value @param {any} read @returns {any} */
  const adapt = (attribute, value, read) => {
    if (Array.isArray(value)) {
      const allowed = value.filter((item) => !item?.__component || attribute.components?.includes(item.__component));
      return allowed.map((item) => adapt(attribute, item, sameItem(read, item)));
    }
    const inside = attributesOf(model, attribute, value);
    if (!inside) return typeof value === "number" && TEXTS.has(attribute.type) ? String(value) : value;
    const rest = Object.entries(value).filter(([name]) => isOfForm(name));
    const own = Object.entries(inside).map(([name, inner]) => {
      return [name, name in value ? adapt(inner, value[name], read?.[name]) : read?.[name]];
    });
    return Object.fromEntries([...rest, ...own]);
  };
  return Object.fromEntries(Object.entries(values).map(([name, value]) => {
    return [name, attributes[name] ? adapt(attributes[name], value, fresh[name]) : value];
  }));
}

/**
 * Return what the user has typed into attributes that components no longer have, by path with dots.
 * @param {Pick<FormResource, "model" | "attributes">} resource
 * @param {Values} base
 * @param {Values} values
 * @returns {Values}
 */
export function lostInside({ model, attributes }, base, values) {
  /** @type {Values} */
  const lost = {};
  /** @param {Attribute} attribute @param {any} before @param {any} value @param {(string | number)[]} path */
  const collect = (attribute, before, value, path) => {
    if (Array.isArray(value)) {
      value.forEach((item, index) => collect(attribute, sameItem(before, item), item, [...path, index + 1]));
      return;
    }
    const inside = attributesOf(model, attribute, value);
    const isGone = value?.__component && !attribute.components?.includes(value.__component);
    for (const [name, typed] of inside || isGone ? Object.entries(value) : []) {
      const uid = value.__component ?? attribute.component;
      if (isOfForm(name) || isSecret(uid, name)) continue;
      if (inside?.[name] && !isGone) collect(inside[name], before?.[name], typed, [...path, name]);
      else if (!same(before?.[name], typed)) lost[[...path, name].join(".")] = typed;
    }
  };
  for (const [name, attribute] of Object.entries(attributes)) collect(attribute, base[name], values[name], [name]);
  return lost;
}

/**
 * Return whether components in a document lack attributes of the schema that the form knows.
 * @param {Pick<FormResource, "model" | "attributes">} resource
 * @param {string[]} names  The attributes of the document to look at.
 * @param {any} document  As returned by the API, which returns empty attributes too.
 */
export function lacksInside({ model, attributes }, names, document) {
  /** @param {Attribute} attribute @param {any} value @returns {boolean} */
  const lacks = (attribute, value) => [value].flat().some((item) => {
    return Object.entries(attributesOf(model, attribute, item) ?? {}).some(([name, inner]) => {
      return !isHidden(inner) && (!(name in item) || lacks(inner, item[name]));
    });
  });
  return names.some((name) => attributes[name] && lacks(attributes[name], document[name]));
}

/**
 * Return the attributes of the component that a value is, or undefined if it is none.
 * @param {import("../model.js").Model} model
 * @param {Attribute} attribute
 * @param {any} value
 * @returns {Record<string, Attribute> | undefined}
 */
function attributesOf(model, { type, component }, value) {
  if ((type !== "component" && type !== "dynamiczone") || !value || typeof value !== "object") return undefined;
  return model.components[value.__component ?? component]?.attributes;
}

/**
 * Return the component in a list that has the same id and type.
 * @param {any} list
 * @param {any} item
 */
const sameItem = (list, item) => {
  const isSame = (/** @type {any} */ one) => one?.id === item?.id && one?.__component === item?.__component;
  return Array.isArray(list) && item?.id !== undefined ? list.find(isSame) : undefined;
};
