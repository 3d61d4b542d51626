/** The page with the deleted documents of a content type. They are still in git and can be restored. */

import { addressTo } from "../addresses.js";
import { ApiError, ask } from "../api.js";
import { useStudio } from "../context.js";
import { t } from "../language.js";
import { Link } from "../router.js";
import { Empty, Failure, Loading, NoContent } from "../states.js";
import { ago, inSentence, timestamp } from "../text.js";
import { clearMessage, showError, useMessage } from "../store/messages.js";
import { reloadContent, usePages } from "../store/requests.js";
import { html, useState } from "../vendor/preact.js";
import { mayRestore, restoreDeleted } from "./restoring.js";

/**
 * @typedef {import("../model.js").Type} Type
 * @typedef {import("./restoring.js").Deleted} Deleted
 */

const PAGE = 25;

/** @param {{type: string}} props */
export function DeletedPage({ type: name }) {
  const { model } = useStudio();
  const type = model.typeNamed(name);
  if (!type) return html`<${NoContent} name=${name} />`;
  return html`<div class="page deleted">
    <header class="page-head deleted-head">
      <p class="document-type"><${Link} to=${addressTo("list", { type: name })}>${type.plural}<//></p>
      <h1 tabindex="-1">${t`Deleted ${inSentence(type.plural)}`}</h1>
    </header>
    ${mayRestore(model, type)
      ? html`<${Documents} type=${type} />`
      : !model.isServed
        ? html`<${Empty} title=${t`Not available here`}>${t`Documents can be restored only on the live site.`}<//>`
        : html`<${Empty} title=${t`Your role can't restore documents`}>
          ${t`Restoring needs the permissions history: [read, restore] and create for this type.`}<//>`}
  </div>`;
}

/** @param {{type: Type}} props */
function Documents({ type }) {
  const { model } = useStudio();
  const load = async (/** @type {number} */ page, /** @type {AbortSignal} */ signal) => {
    const query = { deleted: "true", page, pageSize: PAGE };
    const { data, meta } = await ask(type.path.replace("/api/", "history/"), { query, signal });
    return { items: /** @type {Deleted[]} */ (data), pages: meta.pagination.pageCount };
  };
  const { items, hasMore, error, more, retry } = usePages(`deleted ${type.name}`, load);
  if (error) return html`<${Off} error=${error} again=${retry} />`;
  if (!items) return html`<${Loading} />`;
  if (!items.length) {
    return html`<${Empty} title=${t`Nothing was deleted`}>${t`Documents that were committed before they were deleted
      appear here.`}<//>`;
  }
  return html`
    <p class="hint">${model.seesDrafts(type)
      ? t`Restored documents come back as drafts, with their last content.`
      : t`Restored documents are public again immediately, with their last content.`}</p>
    <ul class="deleted-list">
      ${items.map((one) => html`<${Row} key=${one.documentId} type=${type} document=${one} />`)}
    </ul>
    ${hasMore && html`<button class="button" type="button" onClick=${more}>${t`Show more`}</button>`}`;
}

/** @param {{type: Type, document: Deleted}} props */
function Row({ type, document }) {
  const { model } = useStudio();
  const [phase, setPhase] = useState(/** @type {"" | "busy" | "done"} */ (""));
  const place = `deleted ${document.documentId}`;
  const message = useMessage(place);
  const title = document.title || document.documentId;
  const restore = async () => {
    setPhase("busy");
    clearMessage(place);
    try {
      await restoreDeleted(model, type, document);
      reloadContent();
      setPhase("done");
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      setPhase("");
      showError(place, error.message);
    }
  };
  const when = document.date && html`<time datetime=${document.date} title=${timestamp(document.date)}>
    ${ago(document.date)}</time>`;
  return html`<li class="deleted-row">
    <span class="deleted-title">${phase === "done"
      ? html`<${Link} to=${addressTo("document", { type: type.name, id: document.documentId })}>${title}<//>`
      : title}</span>
    ${phase !== "done" && html`<span class="deleted-by">${document.author
      ? html`${document.author.name}, ${" "}${when}`
      : t`The deletion is not committed yet`}</span>`}
    <span class="deleted-told" role="status">${phase === "done" && t`Restored`}</span>
    ${phase !== "done" && html`<button class="button" type="button" disabled=${phase === "busy"} onClick=${restore}>
      ${t`Restore`}<span class="unseen"> ${title}</span></button>`}
    ${message.text && html`<p class="field-error deleted-error" role="alert">${message.text}</p>`}
  </li>`;
}

/** @param {{error: any, again: () => void}} props */
function Off({ error, again }) {
  if (error.status === 409) return html`<${Empty} title=${t`No history available`}>${error.message}<//>`;
  return html`<${Failure} error=${error} again=${again} />`;
}
