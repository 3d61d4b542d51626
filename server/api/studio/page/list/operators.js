/** The operators of filters, in one table for each kind of attribute (docs/querying.md). */

import { t } from "../language.js";

/**
 * @typedef {"text" | "number" | "date" | "datetime" | "time" | "boolean" | "choice" | "related" | "presence"} Kind
 * @typedef {import("./state.js").Condition} Condition
 */

/**
 * @typedef {object} Filterable  Something by which the list can be filtered.
 * @property {string} path  Its name in URLs, see `Condition`.
 * @property {string} label
 * @property {Kind} kind
 * @property {string[]} keys  Its keys in the parameter `filters`. For a relation, they include the target's title
 *   attribute.
 * @property {string[]} [choices]
 */

const PRESENCE = { $notNull: t`has a value`, $null: t`is empty` };
const SEVERAL = { $in: t`is one of`, $notIn: t`is none of` };
const BETWEEN = { $between: t`is between` };
const COMPARED = { $eq: t`is`, $ne: t`is not`, $lt: t`is less than`, $lte: t`is at most` };
const MORE = { $gt: t`is more than`, $gte: t`is at least`, ...BETWEEN };
const DATED = {
  $eq: t`is`,
  $lt: t`is before`,
  $gt: t`is after`,
  $lte: t`is not after`,
  $gte: t`is not before`,
  ...BETWEEN,
};
const TEXTUAL = {
  $containsi: t`contains`,
  $notContainsi: t`does not contain`,
  $eqi: t`is`,
  $nei: t`is not`,
  $startsWithi: t`begins with`,
  $endsWithi: t`ends with`,
};

/** @type {Record<Kind, Record<string, string>>} */
export const OPERATORS = {
  text: { ...TEXTUAL, ...SEVERAL, ...PRESENCE },
  number: { ...COMPARED, ...MORE, ...SEVERAL, ...PRESENCE },
  date: { ...DATED, ...PRESENCE },
  time: { ...DATED, ...PRESENCE },
  datetime: { $lt: t`is before`, $gt: t`is after`, ...BETWEEN, ...PRESENCE },
  boolean: { $eq: t`is`, ...PRESENCE },
  choice: { $eq: t`is`, $ne: t`is not`, ...SEVERAL, ...PRESENCE },
  related: { ...TEXTUAL, ...SEVERAL, ...PRESENCE },
  presence: PRESENCE,
};

/** The kinds by attribute type. @type {Record<string, Kind>} */
export const KINDS = {
  string: "text",
  text: "text",
  richtext: "text",
  email: "text",
  uid: "text",
  integer: "number",
  biginteger: "number",
  float: "number",
  decimal: "number",
  date: "date",
  time: "time",
  datetime: "datetime",
  timestamp: "datetime",
  boolean: "boolean",
  enumeration: "choice",
  relation: "related",
  media: "related",
  json: "presence",
  blocks: "presence",
  component: "presence",
  array: "presence",
};

/**
 * Return how many values a condition has. "two" are the ends of a range; "several" is any number.
 * @param {string} operator
 * @returns {"none" | "one" | "two" | "several"}
 */
export function takes(operator) {
  if (operator in PRESENCE) return "none";
  return operator in BETWEEN ? "two" : operator in SEVERAL ? "several" : "one";
}

/**
 * Return the values of a condition. A single value is stored as it is, several values are stored as JSON.
 * @param {Condition} condition
 * @returns {string[]}
 */
export function valuesOf({ operator, value }) {
  if (takes(operator) === "one") return [value];
  try {
    const values = JSON.parse(value);
    return Array.isArray(values) ? values.map(String) : [];
  } catch {
    return []; // nobody has chosen it here
  }
}

/**
 * Return a condition with the given values.
 * @param {string} path
 * @param {string} operator
 * @param {string[]} values
 * @returns {Condition}
 */
export function conditionOf(path, operator, values) {
  const alone = { none: "", one: values[0] ?? "" };
  const how = takes(operator);
  return { path, operator, value: how === "none" || how === "one" ? alone[how] : JSON.stringify(values) };
}

/**
 * Return the `filters` parameter for conditions. Conditions that are no longer possible, for example after a schema
 * change, are left out.
 * @param {Filterable[]} offered
 * @param {Condition[]} conditions
 */
export function filtersOf(offered, conditions) {
  const all = conditions.flatMap((condition) => {
    const { path, operator } = condition;
    const about = offered.find((each) => each.path === path);
    if (!about || !(operator in OPERATORS[about.kind])) return [];
    const how = takes(operator);
    const keys = how === "none" ? path.split(".") : about.keys;
    const wanted = how === "none" ? ["true"] : valuesOf(condition).map((value) => sent(about.kind, value));
    if (!wanted.length || wanted.includes("") || (how === "two" && wanted.length !== 2)) return [];
    const operand = { [operator]: how === "two" || how === "several" ? wanted : wanted[0] };
    return [keys.reduceRight((/** @type {any} */ inner, key) => ({ [key]: inner }), operand)];
  });
  return all.length ? { $and: all } : {};
}

/**
 * Convert a value for the server: local times are converted to UTC.
 * @param {Kind} kind
 * @param {string} value
 */
function sent(kind, value) {
  if (kind === "time" && /^\d\d:\d\d$/.test(value)) return `${value}:00.000`;
  if (kind !== "datetime") return value;
  const date = new Date(value);
  return Number.isNaN(date.getTime()) ? "" : date.toISOString();
}
