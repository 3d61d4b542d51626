/** The table of a list: a row for each document, sorted by a click on the head of a column. */

import { addressTo } from "./addresses.js";
import { Cell } from "./columns.js";
import { useStudio } from "./context.js";
import { Icon } from "./icons.js";
import { Link } from "./router.js";
import { StatusMark } from "./status.js";
import { titleOf } from "./text.js";
import { html } from "./vendor/preact.js";

/**
 * @typedef {import("./model.js").Type} Type
 * @typedef {import("./columns.js").Column} Column
 * @typedef {import("./list-state.js").ListState} ListState
 * @typedef {import("./selection.js").Selection} Selection
 */

/**
 * @param {{type: Type, rows?: import("./documents.js").Row[], columns: Column[], state: ListState,
 *   change: (changes: Partial<ListState>) => void, loading: boolean, selection?: Selection}} props
 */
export function Table({ type, rows, columns, state, change, loading, selection }) {
  const { model } = useStudio();
  const drafts = model.seesDrafts(type);
  const title = { name: "", label: type.title ? "Title" : "Document", type: "", sort: type.title ?? "documentId" };
  return html`<div class="table-frame" role="region" aria-label=${type.plural} aria-busy=${loading} tabindex="0">
    <table class="table">
      <thead>
        <tr>
          ${selection && html`<${SelectAll} selection=${selection} count=${rows?.length ?? 0} />`}
          <${Head} column=${title} ...${{ type, state, change }} />
          ${drafts && html`<th scope="col">Status</th>`}
          ${columns.map((column) => html`<${Head} key=${column.name} ...${{ type, column, state, change }} />`)}
        </tr>
      </thead>
      <tbody>
        ${rows?.map((row) => html`<${Row} key=${row.document.documentId}
          ...${{ type, row, columns, drafts, state, selection }} />`)}
      </tbody>
    </table>
  </div>`;
}

/** @param {{selection: Selection, count: number}} props */
function SelectAll({ selection, count }) {
  const all = count > 0 && selection.ids.length === count;
  return html`<th scope="col" class="table-select">
    <input type="checkbox" aria-label="Select all of this page" checked=${all}
      indeterminate=${selection.ids.length > 0 && !all} onClick=${() => selection.toggleAll(!all)} />
  </th>`;
}

/**
 * The head of a column. The first click sorts upwards, but times from the latest on; the next one the other way round.
 * @param {{type: Type, column: Column, state: ListState, change: (changes: Partial<ListState>) => void}} props
 */
function Head({ type, column, state, change }) {
  if (!column.sort || type.single) return html`<th scope="col">${column.label}</th>`;
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
 * @param {{type: Type, row: import("./documents.js").Row, columns: Column[], drafts: boolean, state: ListState,
 *   selection?: Selection}} props
 */
function Row({ type, row: { document, status }, columns, drafts, state, selection }) {
  const title = titleOf(type, document);
  const id = document.documentId;
  const edit = addressTo("document", { type: type.name, id }, state.locale ? { locale: state.locale } : {});
  const selected = selection?.ids.includes(id);
  return html`<tr class=${selected ? "is-selected" : ""}>
    ${selection && html`<td class="table-select">
      <input type="checkbox" aria-label=${`Select ${title}`} checked=${selected}
        onClick=${(/** @type {MouseEvent} */ event) => selection.toggle(id, event.shiftKey)} />
    </td>`}
    <th scope="row" class="table-title">${edit ? html`<${Link} to=${edit}>${title}<//>` : title}</th>
    ${drafts && html`<td><${StatusMark} status=${status} /></td>`}
    ${columns.map((column) => html`<td key=${column.name} class="table-value">
      <${Cell} column=${column} value=${document[column.name]} />
    </td>`)}
  </tr>`;
}
