/** A list of a resource: a table with search, filters, pages and a selection of rows. */

import { t } from "../language.js";
import { Link, navigate } from "../router.js";
import { Empty, Failure } from "../states.js";
import { keyOf, reloadContent, useRequest } from "../store/requests.js";
import { html, useEffect, useMemo } from "../vendor/preact.js";
import { BulkBar } from "./bulk.js";
import { useChosenColumns } from "./columns.js";
import { Pages } from "./paging.js";
import { useSelection } from "./selection.js";
import { readState, writeState } from "./state.js";
import { Table } from "./table.js";
import { ListTools } from "./tools.js";

/**
 * @typedef {import("./resource.js").Resource} Resource
 * @typedef {import("./state.js").ListState} ListState
 */

/**
 * @param {{resource: Resource, params: URLSearchParams, renew?: () => void, children?: any}} props  The children are
 *   shown above the rows. `renew` is called if the list does not exist.
 */
export function List({ resource, params, renew, children }) {
  const address = params.toString();
  const state = useMemo(() => readState(resource, new URLSearchParams(address)), [resource, address]);
  const [columns, chosen, choose] = useChosenColumns(resource);
  const { value: page, loading, error, retry } = useRows(resource, state, columns);
  const rows = page?.rows;
  const isMissing = error?.status === 404;
  useEffect(() => void (isMissing && renew?.()), [isMissing]);
  const selection = useSelection(rows, address);
  const selected = rows?.filter(({ id }) => selection.ids.includes(id)) ?? [];
  const selects = resource.actions.length > 0;
  const create = resource.create(state);

  /**
   * Change how the list is shown, and go to its first page.
   * @param {Partial<ListState>} changes
   * @param {{replace?: boolean}} [options]
   */
  const change = (changes, options) => {
    navigate(resource.address(writeState(resource, { ...state, page: 1, ...changes })), options);
  };
  /** @param {import("./resource.js").BulkAction} action */
  const written = ({ removes }) => {
    const isEmptied = removes && selected.length === rows?.length && state.page > 1;
    selection.toggleAll(false);
    reloadContent();
    if (isEmptied) change({ page: state.page - 1 }, { replace: true });
  };
  return html`<div class="page">
    <header class="page-head">
      <h1 tabindex="-1">${resource.heading}</h1>
      ${create && html`<${Link} class="button primary page-action" to=${create.to}>${create.label}<//>`}
    </header>
    ${children}
    ${!resource.isSingle && html`<${ListTools} ...${{ resource, state, change, chosen, choose }} />`}
    ${error
      ? html`<${Failure} error=${error} again=${retry} />`
      : rows?.length === 0
        ? html`<${NoRows} ...${{ resource, state, change }} />`
        : html`<${resource.Rows ?? Table} ...${{ resource, rows, columns, state, change, loading }}
            selection=${selects ? selection : undefined} />`}
    ${page && !error && html`<${Pages} address=${resource.address} params=${params} pages=${page.pages}>
      <span role="status">${resource.countText(page.total)}${resource.placeNote(state)}</span>
      ${resource.links.map(({ label, to }) => to
        ? html`<${Link} key=${label} class="paging-deleted" to=${to}>${label}<//>`
        : html`<span key=${label}>${label}</span>`)}
    <//>`}
    ${selects && html`<${BulkBar} ...${{ resource, state, done: written }} rows=${selected}
      clear=${() => selection.toggleAll(false)} />`}
  </div>`;
}

/**
 * Return the rows of a page. While another page is being loaded, the previous rows stay.
 * @param {Resource} resource
 * @param {ListState} state
 * @param {import("./resource.js").Column[]} columns
 */
function useRows(resource, state, columns) {
  const query = useMemo(() => resource.query(state, columns), [resource, state, columns]);
  const key = keyOf("list", resource, JSON.stringify(query), columns.map(({ name }) => name).join());
  const load = (/** @type {AbortSignal} */ signal) => resource.load(query, columns, signal);
  return useRequest(key, load, { isContent: true, isKept: true });
}

/**
 * @param {{resource: Resource, state: ListState, change: (changes: Partial<ListState>) => void}} props
 */
function NoRows({ resource, state, change }) {
  const { q, conditions, choices } = state;
  const narrowing = resource.choices.filter(({ narrows }) => narrows).map(({ name }) => name);
  const isNarrowed = Boolean(q || conditions.length || narrowing.some((name) => choices[name]));
  if (!isNarrowed) return html`<${Empty} title=${resource.emptyText} />`;
  const all = { ...choices, ...Object.fromEntries(narrowing.map((name) => [name, ""])) };
  return html`<${Empty} title=${t`No results`}>
    <button class="button" type="button"
      onClick=${() => change({ q: "", conditions: [], choices: all })}>${t`Show all`}</button>
  <//>`;
}
