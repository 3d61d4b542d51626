/** What the details of a file show besides its descriptions: facts, the documents that use it, and what can be done. */

import { addressTo } from "../addresses.js";
import { fileAddress } from "../api.js";
import { useStudio } from "../context.js";
import { plural, t } from "../language.js";
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
    <dt>${t`Type`}</dt>
    <dd>${file.mime}, ${sizeText(file.size)}${width && height ? `, ${t`${width} × ${height} pixels`}`
      : ""}</dd>
    <dt>${t`Folder`}</dt><dd>${folderOf(file) || t`Top folder`}</dd>
    <dt>${t`Address`}</dt><dd><a href=${fileAddress(file.url)} target="_blank" rel="noopener">${file.url}</a></dd>
    <dt>${t`Added`}</dt><dd><time datetime=${file.createdAt}>${timestamp(file.createdAt)}</time></dd>
    <dt>${t`Changed`}</dt><dd><time datetime=${file.updatedAt}>${timestamp(file.updatedAt)}</time></dd>
  </dl>`;
}

/**
 * The documents that use a file, with links to their forms.
 * @param {{file: any}} props
 */
export function Usage({ file }) {
  const { value, error } = useRequest(`usage ${file.id}`, (signal) => readUsage(file.id, signal), { isContent: true });
  if (error) return html`<p class="field-error" role="alert">${error.message}</p>`;
  if (!value) return html`<p class="hint" role="status">${t`Looking for documents that use this file…`}</p>`;
  const { uses, total, hidden } = value;
  const others = hidden ? t`Other documents use it, too, which your role can't see.` : "";
  const heading = total ? plural(total, { one: "Used in {0} place", other: "Used in {0} places" }) : t`Not used`;
  return html`<section class="media-usage" aria-label=${t`Used in`}>
    <h3 class="media-heading">${heading}</h3>
    ${total === 0 && html`<p class="hint">${hidden
      ? t`Only documents that your role can't see use this file.`
      : t`No document that you can see uses this file. The website's own code may use it.`}</p>`}
    ${total > 0 && html`<ul class="media-uses">${uses.map((use, i) => html`<${UseItem} use=${use} key=${i} />`)}</ul>`}
    ${total > uses.length && html`<p class="hint">${t`And ${counted(total - uses.length)} more.`}</p>`}
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
