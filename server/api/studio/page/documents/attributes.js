/** The attributes of a content type that a list of its documents offers as filters and columns. */

import { t } from "../language.js";
import { KINDS } from "../list/operators.js";
import { labelOf } from "../text.js";

/**
 * @typedef {import("../model.js").Attribute} Attribute
 * @typedef {import("../list/operators.js").Filterable} Filterable
 * @typedef {import("../list/resource.js").Column} Column
 */

const PLAIN = [
  ...["string", "text", "email", "uid", "enumeration", "boolean", "date", "time", "datetime", "timestamp"],
  ...["integer", "biginteger", "float", "decimal"],
];
const USUAL = ["relation", "enumeration", "date", "boolean"]; // types of attributes that are shown without a choice
const USUAL_COLUMNS = 2;
/** The attributes that every document has in addition to those of its content type. @type {Record<string, string>} */
const TIMES = { createdAt: t`Created`, updatedAt: t`Changed` };

/**
 * Return the columns that can be shown in addition to the title and the status.
 * @param {import("../model.js").Model} model
 * @param {import("../model.js").Type} type
 * @returns {Column[]}
 */
export function columnsOf(model, type) {
  const own = Object.entries(type.attributes).flatMap(([name, attribute]) => {
    if (attribute.private || name === type.title) return [];
    const column = { name, label: labelOf(name), type: attribute.type };
    if (PLAIN.includes(attribute.type)) return [{ ...column, sort: name }];
    if (attribute.type !== "relation" && attribute.type !== "media") return [];
    const related = relatedTitle(model, attribute);
    const many = attribute.multiple || attribute.relation?.endsWith("ToMany") || attribute.type === "media";
    return related ? [{ ...column, related, sort: many ? "" : `${name}.${related}` }] : [];
  });
  const times = Object.entries(TIMES).map(([name, label]) => ({ name, label, type: "datetime", sort: name }));
  return [...own, ...times];
}

/** Return the names of the columns that are shown by default. @param {Column[]} columns */
export function usualColumns(columns) {
  const telling = columns.filter((column) => USUAL.includes(column.type) && column.sort);
  return [...telling.slice(0, USUAL_COLUMNS).map((column) => column.name), "updatedAt"];
}

/**
 * Return the attributes by which the user can filter the documents of a content type, including those in components.
 * @param {import("../model.js").Model} model
 * @param {import("../model.js").Type} type
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
  const times = Object.entries(TIMES).map(([name, label]) => ({ path: name, label, kind: "datetime", keys: [name] }));
  return [...own, ...times];
}

/**
 * @param {import("../model.js").Model} model
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
 * Return the attribute that is the title of an attribute's related documents or files. Returns null if the user may not
 * find them.
 * @param {import("../model.js").Model} model
 * @param {Attribute} attribute
 */
export function relatedTitle(model, attribute) {
  if (attribute.type === "media") return model.allows("upload", "find") ? "name" : null;
  const target = model.listed.find((type) => type.uid === attribute.target);
  return target ? (target.title ?? "documentId") : null;
}
