/** The table of a list. A click on a column's header sorts the list. */

import { Icon } from "../icons.js";
import { t } from "../language.js";
import { Link } from "../router.js";
import { html } from "../vendor/preact.js";
import { Cell } from "./columns.js";

/**
 * @typedef {import("./resource.js").Resource} Resource
 * @typedef {import("./resource.js").Column} Column
 * @typedef {import("./resource.js").Row} Row
 * @typedef {import("./state.js").ListState} ListState
 * @typedef {import("./selection.js").Selection} Selection
 */

/**
 * @param {{resource: Resource, rows?: Row[], columns: Column[], state: ListState,
 *   change: (changes: Partial<ListState>) => void, loading: boolean, selection?: Selection}} props
 */
export function Table({ resource, rows, columns, state, change, loading, selection }) {
  const { heading, isSingle, title } = resource;
  return html`<div class="table-frame" role="region" aria-label=${heading} aria-busy=${loading} tabindex="0">
    <table class="table">
      <thead>
        <tr>
          ${selection && html`<${SelectAll} selection=${selection} count=${rows?.length ?? 0} />`}
          ${[title, ...columns].map((column) => html`<${Head} key=${column.name}
            ...${{ column, isSingle, state, change }} />`)}
        </tr>
      </thead>
      <tbody>
        ${rows?.map((row) => html`<${TableRow} key=${row.id} ...${{ resource, row, columns, state, selection }} />`)}
      </tbody>
    </table>
  </div>`;
}

/** @param {{selection: Selection, count: number}} props */
function SelectAll({ selection, count }) {
  const all = count > 0 && selection.ids.length === count;
  return html`<th scope="col" class="table-select">
    <input type="checkbox" aria-label=${t`Select all on this page`} checked=${all}
      indeterminate=${selection.ids.length > 0 && !all} onClick=${() => selection.toggleAll(!all)} />
  </th>`;
}

/**
 * The header of a column. The first click sorts in ascending order, but times with the latest first. The next click
 * reverses the order.
 * @param {{column: Column, isSingle: boolean, state: ListState,
 *   change: (changes: Partial<ListState>) => void}} props
 */
function Head({ column, isSingle, state, change }) {
  if (!column.sort || isSingle) return html`<th scope="col">${column.label}</th>`;
  const [by, direction = "asc"] = state.sort.split(":");
  const sorted = by === column.sort ? (direction === "asc" ? "ascending" : "descending") : undefined;
  const first = ["date", "datetime", "timestamp"].includes(column.type) ? "desc" : "asc";
  const next = sorted ? (direction === "asc" ? "desc" : "asc") : first;
  return html`<th scope="col" aria-sort=${sorted}>
    <button class="sort" type="button" onClick=${() => change({ sort: `${column.sort}:${next}` })}>
      ${column.label}
      <span class="sort-mark">${sorted && html`<${Icon} name=${sorted === "ascending" ? "up" : "down"} />`}</span>
    </button>
  </th>`;
}

/**
 * @param {{resource: Resource, row: Row, columns: Column[], state: ListState, selection?: Selection}} props
 */
function TableRow({ resource, row, columns, state, selection }) {
  const { id, title } = row;
  const to = resource.addressOf(row, state);
  const selected = selection?.ids.includes(id);
  const content = resource.title.cell?.(row) ?? title;
  return html`<tr class=${selected ? "is-selected" : ""}>
    ${selection && html`<td class="table-select">
      <input type="checkbox" aria-label=${t`Select ${title}`} checked=${selected}
        onClick=${(/** @type {MouseEvent} */ event) => selection.toggle(id, event.shiftKey)} />
    </td>`}
    <th scope="row" class="table-title">${to ? html`<${Link} to=${to}>${content}<//>` : content}</th>
    ${columns.map((column) => html`<td key=${column.name} class=${column.cell ? "" : "table-value"}>
      <${Cell} column=${column} row=${row} />
    </td>`)}
  </tr>`;
}
