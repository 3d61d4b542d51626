/** The documents of a type, as a table. */

import { addressTo } from "./addresses.js";
import { BulkBar } from "./bulk.js";
import { columnsOf, useChosen } from "./columns.js";
import { useStudio } from "./context.js";
import { mayRestore } from "./deleted/restoring.js";
import { useDocuments } from "./documents.js";
import { rightsOf } from "./form/rights.js";
import { readState, writeState } from "./list-state.js";
import { ListTools } from "./list-tools.js";
import { Pages } from "./paging.js";
import { Link, navigate } from "./router.js";
import { useSelection } from "./selection.js";
import { Empty, Failure, NoContent } from "./states.js";
import { Table } from "./table.js";
import { counted } from "./text.js";
import { reloadContent } from "./store/requests.js";
import { html, useMemo } from "./vendor/preact.js";

/** @param {{type: string, params: URLSearchParams}} props */
export function List({ type: name, params }) {
  const { model } = useStudio();
  const type = model.typeNamed(name);
  if (type) return html`<${Documents} type=${type} params=${params} />`;
  return html`<${NoContent} name=${name} />`;
}

/** @param {{type: import("./model.js").Type, params: URLSearchParams}} props */
function Documents({ type, params }) {
  const { model } = useStudio();
  const asked = params.toString();
  const state = useMemo(() => readState(new URLSearchParams(asked)), [asked]);
  const columns = useMemo(() => columnsOf(model, type), [model, type]);
  const [chosen, choose] = useChosen(type, columns);
  const shown = useMemo(() => columns.filter((column) => chosen.includes(column.name)), [columns, chosen]);
  const { rows, total, pages, loading, error, retry } = useDocuments(model, type, state, shown);
  const inLocale = /** @type {Record<string, string>} */ (state.locale ? { locale: state.locale } : {});
  const make = rightsOf(model, type, true).create && addressTo("create", { type: type.name }, inLocale);
  const rights = rightsOf(model, type, false);
  const selection = useSelection(rows, asked);
  const selected = rows?.filter((row) => selection.ids.includes(row.document.documentId)) ?? [];
  const locale = model.localeOf(type, state.locale);
  const narrowed = Boolean(state.q || state.conditions.length || state.status);

  /**
   * Show the list in another way, from its first page on.
   * @param {Partial<import("./list-state.js").ListState>} changes
   * @param {{replace?: boolean}} [options]
   */
  const change = (changes, options) => {
    navigate(addressTo("list", { type: type.name }, writeState({ ...state, page: 1, ...changes })), options);
  };
  /** @param {string} action */
  const written = (action) => {
    const emptied = action === "delete" && selected.length === rows?.length && state.page > 1;
    selection.toggleAll(false);
    reloadContent();
    if (emptied) change({ page: state.page - 1 }, { replace: true });
  };
  const selects = !type.single && (rights.publish || rights.remove);
  return html`<div class="page">
    <header class="page-head">
      <h1 tabindex="-1">${type.plural}</h1>
      ${make && html`<${Link} class="button primary page-action" to=${make}>New ${type.label.toLowerCase()}<//>`}
    </header>
    ${!type.single && html`<${ListTools} ...${{ type, state, change, columns, chosen, choose }} />`}
    ${error
      ? html`<${Failure} error=${error} again=${retry} />`
      : rows?.length === 0
        ? html`<${Empty} title=${type.single ? "Not written yet" : narrowed ? "Nothing is found" : "No documents yet"}>
            ${narrowed && html`<button class="button" type="button"
              onClick=${() => change({ q: "", conditions: [], status: "" })}>Show all</button>`}
          <//>`
        : html`<${Table} ...${{ type, rows, columns: shown, state, change, loading }}
            selection=${selects ? selection : undefined} />`}
    ${rows && !error && html`<${Pages} type=${type} params=${params} pages=${pages}>
      <span role="status">${counted(total)} ${total === 1 ? "document" : "documents"}${locale && ` in ${locale}`}</span>
      ${!type.single && mayRestore(model, type) && html`<${Link} class="paging-deleted"
        to=${addressTo("deleted", { type: type.name })}>Deleted documents<//>`}
    <//>`}
    ${selects && html`<${BulkBar} ...${{ type, rights, done: written }} rows=${selected} locale=${state.locale}
      clear=${() => selection.toggleAll(false)} />`}
  </div>`;
}
