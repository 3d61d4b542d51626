/** The columns of a list: which ones are shown, and how values are displayed. */

import { t } from "../language.js";
import { ago, day, timestamp } from "../text.js";
import { html, useMemo, useState } from "../vendor/preact.js";

/**
 * @typedef {import("./resource.js").Column} Column
 * @typedef {import("./resource.js").Resource} Resource
 */

/**
 * Return the shown columns, the names of the chosen columns, and a function that changes the choice. The browser stores
 * the choice.
 * @param {Resource} resource
 * @returns {[Column[], string[], (names: string[] | null) => void]}
 */
export function useChosenColumns({ name, fixed, columns, usualColumns }) {
  const key = `bifolio.columns.${name}`;
  const [chosen, set] = useState(() => readNames(key) ?? usualColumns);
  const shown = useMemo(() => [...fixed, ...columns.filter((one) => chosen.includes(one.name))], [columns, chosen]);
  /** @param {string[] | null} names  The names, or null for the default columns. */
  const choose = (names) => {
    set(names ?? usualColumns);
    try {
      if (names) localStorage.setItem(key, JSON.stringify(names));
      else localStorage.removeItem(key);
    } catch {
      // If the browser can't store the choice, it is valid until the page is left.
    }
  };
  return [shown, chosen, choose];
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
 * The cell of a row in a column.
 * @param {{column: Column, row: import("./resource.js").Row}} props
 */
export function Cell({ column, row }) {
  if (column.cell) return column.cell(row);
  const value = row.values[column.name];
  if (value === null || value === undefined || value === "") return "";
  if (column.related) {
    const related = [value].flat().map((each) => String(each[column.related ?? ""] || each.documentId));
    return html`<span title=${related.join(", ")}>${related.join(", ")}</span>`;
  }
  if (column.type === "boolean") return value ? t`Yes` : t`No`;
  if (column.type === "date") return html`<time datetime=${value}>${day(value)}</time>`;
  if (column.type === "datetime" || column.type === "timestamp") {
    return html`<time datetime=${value} title=${timestamp(value)}>${ago(value)}</time>`;
  }
  return html`<span title=${String(value)}>${String(value)}</span>`;
}
