/** What the details of a file show besides its descriptions: facts, the documents that use it, and what can be done. */

import { addressTo } from "../addresses.js";
import { fileAddress } from "../api.js";
import { useStudio } from "../context.js";
import { Link } from "../router.js";
import { useRequest } from "../store/requests.js";
import { counted, labelOf, timestamp } from "../text.js";
import { html } from "../vendor/preact.js";
import { folderOf, sizeText } from "./file.js";
import { readUsage } from "./requests.js";

/** @param {{file: any}} props  A file, as returned by the API. */
export function Facts({ file }) {
  const { width, height } = file;
  return html`<dl class="media-facts">
    <dt>Type</dt><dd>${file.mime}, ${sizeText(file.size)}${width && height ? `, ${width} × ${height} pixels` : ""}</dd>
    <dt>Folder</dt><dd>${folderOf(file) || "Top folder"}</dd>
    <dt>Address</dt><dd><a href=${fileAddress(file.url)} target="_blank" rel="noopener">${file.url}</a></dd>
    <dt>Added</dt><dd><time datetime=${file.createdAt}>${timestamp(file.createdAt)}</time></dd>
    <dt>Changed</dt><dd><time datetime=${file.updatedAt}>${timestamp(file.updatedAt)}</time></dd>
  </dl>`;
}

/**
 * The documents that use a file, with links to their forms.
 * @param {{file: any}} props
 */
export function Usage({ file }) {
  const { value, error } = useRequest(`usage ${file.id}`, (signal) => readUsage(file.id, signal), { isContent: true });
  if (error) return html`<p class="field-error" role="alert">${error.message}</p>`;
  if (!value) return html`<p class="hint" role="status">Looking for documents that use this file…</p>`;
  const { uses, total, hidden } = value;
  const others = hidden ? "Other documents use it, too, which your role can't see." : "";
  const heading = total === 1 ? "Used in 1 place" : total ? `Used in ${counted(total)} places` : "Not used";
  return html`<section class="media-usage" aria-label="Used in">
    <h3 class="media-heading">${heading}</h3>
    ${total === 0 && html`<p class="hint">${hidden
      ? "Only documents that your role can't see use this file."
      : "No document that you can see uses this file. The website's own code may use it."}</p>`}
    ${total > 0 && html`<ul class="media-uses">${uses.map((use, i) => html`<${UseItem} use=${use} key=${i} />`)}</ul>`}
    ${total > uses.length && html`<p class="hint">And ${counted(total - uses.length)} more.</p>`}
    ${total > 0 && others && html`<p class="hint">${others}</p>`}
  </section>`;
}

/** @param {{use: import("./requests.js").Use}} props */
function UseItem({ use }) {
  const { model } = useStudio();
  const type = model.typeNamed(use.type);
  const language = type ? model.localeOf(type, use.locale) : "";
  const notes = [
    type?.label ?? labelOf(use.type), language, use.status === "draft" ? "draft" : "",
    use.attributes.map((name) => labelOf(name.replaceAll(".", " "))).join(", "),
  ].filter(Boolean);
  const title = use.title || use.documentId;
  /** @type {Record<string, string>} */
  const params = use.locale === model.defaultLocale ? {} : { locale: use.locale };
  return html`<li>
    ${type
      ? html`<${Link} to=${addressTo("document", { type: type.name, id: use.documentId }, params)}>${title}<//>`
      : title}
    <span class="hint"> ${notes.join(" · ")}</span>
  </li>`;
}
