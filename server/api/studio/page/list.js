/** The documents of a type, as a table. */

import { addressTo } from "./addresses.js";
import { useStudio } from "./context.js";
import { useDocuments } from "./documents.js";
import { rightsOf } from "./form/rights.js";
import { Pages } from "./paging.js";
import { Link } from "./router.js";
import { Empty, Failure } from "./states.js";
import { StatusMark } from "./status.js";
import { ago, counted, timestamp, titleOf } from "./text.js";
import { html } from "./vendor/preact.js";

/** @param {{type: string, params: URLSearchParams}} props */
export function List({ type: name, params }) {
  const { model } = useStudio();
  const type = model.typeNamed(name);
  return html`<div class="page">
    <header class="page-head">
      <h1 tabindex="-1">${type ? type.plural : "There is no such content"}</h1>
      ${type && rightsOf(model, type, true).create && html`<${Link} class="button primary page-action"
        to=${addressTo("create", { type: type.name })}>New ${type.label.toLowerCase()}<//>`}
    </header>
    ${type
      ? html`<${Documents} type=${type} params=${params} />`
      : html`<${Empty} title=${`Nothing is called “${name}”`}>It does not exist, or your role may not see it.<//>`}
  </div>`;
}

/** @param {{type: import("./model.js").Type, params: URLSearchParams}} props */
function Documents({ type, params }) {
  const { model } = useStudio();
  const { rows, total, pages, error, again } = useDocuments(model, type, params);
  const drafts = model.seesDrafts(type);
  if (error) return html`<${Failure} error=${error} again=${again} />`;
  if (rows?.length === 0) return html`<${Empty} title=${type.single ? "Not written yet" : "No documents yet"} />`;
  return html`<div class="table-frame" role="region" aria-label=${type.plural} aria-busy=${!rows} tabindex="0">
      <table class="table">
        <thead>
          <tr>
            <th scope="col">${type.title ? "Title" : "Document"}</th>
            ${drafts && html`<th scope="col">Status</th>`}
            <th scope="col">Changed</th>
          </tr>
        </thead>
        <tbody>
          ${rows?.map((row) => html`<${Row} ...${{ type, row, drafts }} key=${row.document.documentId} />`)}
        </tbody>
      </table>
    </div>
    ${rows && html`<${Pages} type=${type} params=${params} pages=${pages}>
      ${counted(total)} ${total === 1 ? "document" : "documents"}
    <//>`}`;
}

/** @param {{type: import("./model.js").Type, row: import("./documents.js").Row, drafts: boolean}} props */
function Row({ type, row: { document, status }, drafts }) {
  const title = titleOf(type, document);
  const edit = addressTo("document", { type: type.name, id: document.documentId });
  return html`<tr>
    <th scope="row" class="table-title">${edit ? html`<${Link} to=${edit}>${title}<//>` : title}</th>
    ${drafts && html`<td><${StatusMark} status=${status} /></td>`}
    <td class="table-time">
      <time datetime=${document.updatedAt} title=${timestamp(document.updatedAt)}>${ago(document.updatedAt)}</time>
    </td>
  </tr>`;
}
