/** What can be filtered, and by which operators: a table for each kind of attribute (docs/querying.md). */

/**
 * @typedef {"text" | "number" | "date" | "datetime" | "time" | "boolean" | "choice" | "related" | "presence"} Kind
 * @typedef {import("./model.js").Attribute} Attribute
 */

/**
 * @typedef {object} Filterable  Something that a condition can be about.
 * @property {string} path  As it is in addresses, see `Condition`.
 * @property {string} label
 * @property {Kind} kind
 * @property {string[]} keys  Where `filters` have it: for a relation, with the title of what it leads to.
 * @property {string[]} [choices]
 */

const PRESENCE = { $notNull: "has a value", $null: "is empty" };
const COMPARED = { $eq: "is", $ne: "is not", $lt: "is less than", $lte: "is at most" };
const MORE = { $gt: "is more than", $gte: "is at least" };
const DATED = { $eq: "is", $lt: "is before", $gt: "is after", $lte: "is not after", $gte: "is not before" };
const TEXTUAL = {
  $containsi: "contains",
  $notContainsi: "does not contain",
  $eqi: "is",
  $nei: "is not",
  $startsWithi: "begins with",
  $endsWithi: "ends with",
};

/** @type {Record<Kind, Record<string, string>>} */
export const OPERATORS = {
  text: { ...TEXTUAL, ...PRESENCE },
  number: { ...COMPARED, ...MORE, ...PRESENCE },
  date: { ...DATED, ...PRESENCE },
  time: { ...DATED, ...PRESENCE },
  datetime: { $lt: "is before", $gt: "is after", ...PRESENCE },
  boolean: { $eq: "is", ...PRESENCE },
  choice: { $eq: "is", $ne: "is not", ...PRESENCE },
  related: { ...TEXTUAL, ...PRESENCE },
  presence: PRESENCE,
};

/** @type {Record<string, Kind>} */
const KINDS = {
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
};

/** @param {string} operator */
export const takesValue = (operator) => !(operator in PRESENCE);

/**
 * What the documents of a type can be filtered by, for whoever is here: also what is in their components.
 * @param {import("./model.js").Model} model
 * @param {import("./model.js").Type} type
 * @returns {Filterable[]}
 */
export function filterables(model, type) {
  const own = Object.entries(type.attributes).flatMap(([name, attribute]) => {
    const inner = attribute.type === "component" ? model.components[attribute.component ?? ""]?.attributes : undefined;
    return [
      ...filterable(model, [name], attribute),
      ...Object.entries(inner ?? {}).flatMap(([below, part]) => filterable(model, [name, below], part)),
    ];
  });
  /** @type {Filterable[]} */
  const kept = ["createdAt", "updatedAt"].map((name) => ({
    path: name,
    label: labelOf(name),
    kind: "datetime",
    keys: [name],
  }));
  return [...own, ...kept];
}

/**
 * @param {import("./model.js").Model} model
 * @param {string[]} names
 * @param {Attribute} attribute
 * @returns {Filterable[]}
 */
function filterable(model, names, attribute) {
  const kind = KINDS[attribute.type];
  if (!kind || attribute.private) return [];
  const title = kind === "related" ? relatedTitle(model, attribute) : "";
  if (title === null) return [];
  const label = names.map(labelOf).join(" › ");
  return [{ path: names.join("."), label, kind, keys: title ? [...names, title] : names, choices: attribute.enum }];
}

/**
 * What names the documents or files that an attribute leads to; null where the caller may not find them.
 * @param {import("./model.js").Model} model
 * @param {Attribute} attribute
 */
export function relatedTitle(model, attribute) {
  if (attribute.type === "media") return model.allows("upload", "find") ? "name" : null;
  const target = model.listed.find((type) => type.uid === attribute.target);
  return target ? (target.title ?? "documentId") : null;
}

/**
 * The `filters` of the conditions that can be met; others, of an earlier schema, say, are left out.
 * @param {Filterable[]} offered
 * @param {import("./list-state.js").Condition[]} conditions
 */
export function filtersOf(offered, conditions) {
  const all = conditions.flatMap(({ path, operator, value }) => {
    const about = offered.find((each) => each.path === path);
    if (!about || !(operator in OPERATORS[about.kind])) return [];
    const keys = takesValue(operator) ? about.keys : path.split(".");
    const wanted = takesValue(operator) ? sent(about.kind, value) : "true";
    if (wanted === "") return [];
    return [keys.reduceRight((/** @type {any} */ inner, key) => ({ [key]: inner }), { [operator]: wanted })];
  });
  return all.length ? { $and: all } : {};
}

/**
 * A value as the server takes it: a time of the viewer's zone in UTC.
 * @param {Kind} kind
 * @param {string} value
 */
function sent(kind, value) {
  if (kind === "time" && /^\d\d:\d\d$/.test(value)) return `${value}:00.000`;
  if (kind !== "datetime") return value;
  const date = new Date(value);
  return Number.isNaN(date.getTime()) ? "" : date.toISOString();
}

/**
 * An attribute's name in words: "publishedOn" → "Published on".
 * @param {string} name
 */
export function labelOf(name) {
  if (name === "updatedAt") return "Changed";
  if (name === "createdAt") return "Created";
  const words = name.replaceAll(/[_-]+/g, " ").replaceAll(/([a-z\d])([A-Z])/g, (_, a, b) => `${a} ${b.toLowerCase()}`);
  return words[0].toUpperCase() + words.slice(1);
}
