/** The values in the dialog of an attribute, and how they differ from the attribute. */

export const SCALARS = [
  "string", "text", "richtext", "blocks", "enumeration", "uid", "email", "password", "integer", "biginteger", "float",
  "decimal", "date", "time", "datetime", "boolean", "json",
];
export const RELATIONS = ["manyToOne", "oneToMany", "oneToOne", "manyToMany"];
const TEXT = ["string", "text", "richtext", "uid", "email", "password"];
const NUMBER = ["integer", "biginteger", "float", "decimal"];
const DATES = ["date", "time", "datetime"];

/**
 * @typedef {import("./schemas.js").Schema} Schema
 * @typedef {import("./schemas.js").Attribute & Record<string, any>} Attribute
 * @typedef {Record<string, any>} Values
 */

/** @param {Attribute} old @param {string} name @returns {Values} */
export function valuesOf(old, name) {
  return {
    ...old,
    name,
    word: wordOf(old),
    enum: old.enum?.join("\n") ?? "",
    default: old.default === undefined || old.default === null ? "" : String(old.default),
    components: Object.fromEntries((old.components ?? []).map((/** @type {string} */ uid) => [uid, true])),
    localized: old.pluginOptions?.i18n?.localized === true,
  };
}

/** Return the word that `retype` uses for the type of an attribute. @param {Attribute} attribute */
export function wordOf({ type, relation, multiple, repeatable }) {
  if (type === "relation") return relation ?? "";
  if (type === "media" || type === "component") return multiple || repeatable ? "many" : "one";
  return type;
}

/** Return the type of the attribute after the changes. @param {Values} values @returns {string} */
export const typeOf = (values) => (SCALARS.includes(values.word) ? values.word : values.type);

/** Return which options the attribute has after the changes, in the order of the dialog. @param {Values} values */
export function optionNamesOf(values) {
  const type = typeOf(values);
  const isRepeatable = values.word ? values.word === "many" : values.repeatable;
  const isList = type === "dynamiczone" || (type === "component" && isRepeatable);
  const hasDefault = [...TEXT, ...NUMBER, ...DATES, "boolean", "enumeration"].includes(type);
  return [
    ...(type === "dynamiczone" ? ["components"] : []),
    ...(type === "enumeration" ? ["enum"] : []),
    ...(type === "uid" ? ["targetField"] : []),
    ...(TEXT.includes(type) ? ["minLength", "maxLength", "regex"] : []),
    ...(NUMBER.includes(type) || isList ? ["min", "max"] : []),
    ...(hasDefault && type !== "uid" && type !== "password" ? ["default"] : []),
    "required",
    ...(SCALARS.includes(type) ? ["unique"] : []),
    "private",
  ];
}

/**
 * Return the number that a text stands for, null if there is no text, or the text itself if it is not a number. JSON
 * has no NaN, so the server would otherwise get null.
 * @param {any} text
 */
function number(text) {
  if (text === "" || text == null) return null;
  return Number.isFinite(Number(text)) ? Number(text) : text;
}

/** Return which attributes can name a document in the text of a uid. @param {Schema} schema */
export const namingAttributesOf = ({ attributes }) => {
  const types = [...TEXT, ...NUMBER, ...DATES, "enumeration"].filter((type) => type !== "password");
  return Object.keys(attributes).filter((name) => types.includes(attributes[name].type));
};

/** Return the attributes of the input for a default value. @param {Values} values @returns {Record<string, any>} */
export function defaultInputOf(values) {
  const type = typeOf(values);
  const { min, max, minLength: minlength, maxLength: maxlength } = values;
  if (type === "biginteger") return { inputmode: "numeric", pattern: "[+\\-]?[0-9]+" };
  if (NUMBER.includes(type)) return { type: "number", step: type === "integer" ? 1 : "any", min, max };
  if (type === "date" || type === "email") return { type };
  return TEXT.includes(type) ? { minlength, maxlength } : {};
}

/** Return the options that the dialog can change. @param {Values} values @returns {Values} */
function optionsOf(values) {
  const lines = String(values.enum ?? "").split("\n").map((line) => line.trim()).filter(Boolean);
  /** @type {Values} */
  const all = {
    components: Object.keys(values.components ?? {}).filter((uid) => values.components[uid]),
    enum: lines,
    targetField: values.targetField || null,
    minLength: number(values.minLength),
    maxLength: number(values.maxLength),
    regex: values.regex || null,
    min: number(values.min),
    max: number(values.max),
    default: defaultOf(values),
    required: values.required || null,
    unique: values.unique || null,
    private: values.private || null,
  };
  return Object.fromEntries(optionNamesOf(values).map((name) => [name, all[name]]));
}

/** @param {Values} values */
function defaultOf(values) {
  const text = String(values.default ?? "");
  const type = typeOf(values);
  if (text === "") return null;
  if (type === "boolean") return text === "true";
  return NUMBER.includes(type) && type !== "biginteger" ? number(text) : text;
}

/** Return the definition of a new attribute. @param {Values} values @returns {Attribute} */
export function definitionOf(values) {
  const { type, relation = RELATIONS[0], target, inversedBy, component, repeatable, multiple } = values;
  const links = {
    relation: { relation, target, inversedBy: inversedBy || null },
    component: { component, repeatable: repeatable || null },
    media: { multiple: multiple || null },
  }[/** @type {string} */ (type)];
  const i18n = values.localized ? { pluginOptions: { i18n: { localized: true } } } : {};
  const all = { type, ...links, ...optionsOf(values), ...i18n };
  return /** @type {any} */ (Object.fromEntries(Object.entries(all).filter(([, value]) => value !== null)));
}

/**
 * Return which options of an attribute the values change.
 * @param {Attribute} old @param {Values} values
 * @returns {Values}
 */
export function changedOptionsOf(old, values) {
  const first = valuesOf(old, "");
  const before = optionsOf({ ...first, word: values.word });
  const isSame = (/** @type {string} */ key, /** @type {any} */ value) => {
    return JSON.stringify(before[key]) === JSON.stringify(value);
  };
  const options = Object.fromEntries(Object.entries(optionsOf(values)).filter(([key, value]) => !isSame(key, value)));
  if (values.localized !== first.localized) options.pluginOptions = { i18n: { localized: values.localized } };
  return options;
}

/**
 * Return an attribute as it is after the changes, for its description.
 * @param {Attribute} old @param {Values} values
 * @returns {any}
 */
export function changedAttribute(old, values) {
  const { target, component } = old;
  const many = values.word === "many";
  return {
    target,
    component,
    ...optionsOf(values),
    type: typeOf(values),
    relation: values.word,
    multiple: many,
    repeatable: many,
    pluginOptions: { i18n: { localized: values.localized } },
  };
}
