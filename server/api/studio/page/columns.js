/** The columns of a list: which there are, which are shown, and how a value is shown in one. */

import { labelOf, relatedTitle } from "./operators.js";
import { ago, day, timestamp } from "./text.js";
import { html, useState } from "./vendor/preact.js";

/**
 * @typedef {object} Column
 * @property {string} name  Of an attribute.
 * @property {string} label
 * @property {string} type  The attribute's.
 * @property {string} sort  What `sort` calls it; "" where it has no order.
 * @property {string} [related]  What names the documents that it leads to.
 */

const PLAIN = [
  ...["string", "text", "email", "uid", "enumeration", "boolean", "date", "time", "datetime", "timestamp"],
  ...["integer", "biginteger", "float", "decimal"],
];
const FIRST = ["relation", "enumeration", "date", "boolean"]; // what is shown until something was chosen
const SHOWN_FIRST = 2;

/**
 * The columns that may be shown beside the title and the status.
 * @param {import("./model.js").Model} model
 * @param {import("./model.js").Type} type
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
  const kept = ["createdAt", "updatedAt"].map((name) => ({ name, label: labelOf(name), type: "datetime", sort: name }));
  return [...own, ...kept];
}

/**
 * The names of the columns that are shown, which this browser remembers, and what changes them.
 * @param {import("./model.js").Type} type
 * @param {Column[]} columns
 * @returns {[string[], (names: string[] | null) => void]}
 */
export function useChosen(type, columns) {
  const key = `quire.columns.${type.name}`;
  const [chosen, set] = useState(() => readNames(key) ?? usual(columns));
  /** @param {string[] | null} names  null for those that are shown without a choice. */
  const choose = (names) => {
    set(names ?? usual(columns));
    try {
      if (names) localStorage.setItem(key, JSON.stringify(names));
      else localStorage.removeItem(key);
    } catch {
      // A browser that keeps nothing shows them until the page is left.
    }
  };
  return [chosen, choose];
}

/** @param {Column[]} columns */
function usual(columns) {
  const telling = columns.filter((column) => FIRST.includes(column.type) && column.sort);
  return [...telling.slice(0, SHOWN_FIRST).map((column) => column.name), "updatedAt"];
}

/** @param {string} key @returns {string[] | null} */
function readNames(key) {
  try {
    const kept = JSON.parse(localStorage.getItem(key) ?? "null");
    return Array.isArray(kept) ? kept.filter((name) => typeof name === "string") : null;
  } catch {
    return null;
  }
}

/**
 * A value in a cell.
 * @param {{column: Column, value: any}} props
 */
export function Cell({ column, value }) {
  if (value === null || value === undefined || value === "") return "";
  if (column.related) {
    const related = [value].flat().map((each) => String(each[column.related ?? ""] || each.documentId));
    return html`<span title=${related.join(", ")}>${related.join(", ")}</span>`;
  }
  if (column.type === "boolean") return value ? "Yes" : "No";
  if (column.type === "date") return html`<time datetime=${value}>${day(value)}</time>`;
  if (column.type === "datetime" || column.type === "timestamp") {
    return html`<time datetime=${value} title=${timestamp(value)}>${ago(value)}</time>`;
  }
  return html`<span title=${String(value)}>${String(value)}</span>`;
}
