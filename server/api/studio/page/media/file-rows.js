/** The files on a page of the library, as a grid or as a table. */

import { t } from "../language.js";
import { Table } from "../list/table.js";
import { Link } from "../router.js";
import { html } from "../vendor/preact.js";
import { TABLE, fileIn, fileOf, isPicture, sizeText } from "./file.js";
import { FileGrid } from "./grid.js";
import { Picture } from "./picture.js";

/** @type {[string, string][]} */
const SORTS = [
  ["createdAt:desc", t`Newest first`], ["createdAt:asc", t`Oldest first`], ["updatedAt:desc", t`Last changed`],
  ["name:asc", t`Name`], ["size:desc", t`Largest first`], ["size:asc", t`Smallest first`],
];

/** @param {any} props  The props of the table of a list. */
export function FileRows(props) {
  const { resource, rows, state, change, loading, selection } = props;
  if (state.choices.view === TABLE) return html`<${Table} ...${props} />`;
  const sorts = SORTS.some(([value]) => value === state.sort) ? SORTS : [...SORTS, [state.sort, t`As in the list`]];
  const all = selection && selection.ids.length === rows?.length;
  return html`<div class="media-files" role="region" aria-label=${t`Media`} aria-busy=${loading}>
    <div class="media-order">
      ${selection && html`<label class="choice"><input type="checkbox" checked=${all}
        indeterminate=${selection.ids.length > 0 && !all} onClick=${() => selection.toggleAll(!all)} />
        ${t`Select all on this page`}</label>`}
      <select class="select" aria-label=${t`Sort by`} value=${state.sort}
        onChange=${(/** @type {any} */ event) => change({ sort: event.target.value })}>
        ${sorts.map(([value, label]) => html`<option key=${value} value=${value}>${label}</option>`)}
      </select>
    </div>
    <${FileGrid} class="media-grid">
      ${rows?.map((/** @type {any} */ row) => html`<${Tile} key=${row.id}
        ...${{ resource, row, state, selection }} />`)}
    <//>
  </div>`;
}

/** @param {any} props */
function Tile({ resource, row, state, selection }) {
  const file = fileIn(row);
  const to = resource.addressOf(row, state);
  const isSelected = selection?.ids.includes(row.id);
  const lack = isPicture(file) && !file.alternativeText ? ` · ${t`no alternative text`}` : "";
  const content = html`<${Picture} file=${fileOf(file)} whole />
    <span class="media-name">${row.title}</span>
    <span class="hint">${sizeText(file.size)}${lack}</span>`;
  return html`<li class=${`media-tile ${isSelected ? "is-selected" : ""}`}>
    ${to ? html`<${Link} class="media-open" to=${to}>${content}<//>` : html`<span class="media-open">${content}</span>`}
    ${selection && html`<label class="media-select">
      <input type="checkbox" aria-label=${t`Select ${row.title}`} checked=${isSelected}
        onClick=${(/** @type {MouseEvent} */ event) => selection.toggle(row.id, event.shiftKey)} /></label>`}
  </li>`;
}
