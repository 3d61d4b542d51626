/** The start page, with the documents that were changed last, and the user's work beside them. */

import { addressTo } from "./addresses.js";
import { useStudio } from "./context.js";
import { Work } from "./home/work.js";
import { t } from "./language.js";
import { Link } from "./router.js";
import { Empty } from "./states.js";
import { ago, timestamp } from "./text.js";
import { html } from "./vendor/preact.js";

export function Home() {
  const { model, overview } = useStudio();
  const types = model.listed;
  const rows = (overview?.recent ?? []).flatMap((document) => {
    const type = model.typeNamed(document.type);
    return type ? [{ type, document }] : [];
  });
  return html`<div class="page home-page">
    <header class="page-head"><h1 tabindex="-1">${t`Recently changed`}</h1></header>
    ${types.length === 0
      ? html`<${Empty} title=${t`Nothing to show`}>
          ${model.types.length ? t`Your role can't read any content.` : t`This site has no content types yet.`}
        <//>`
      : overview && rows.length === 0
        ? html`<${Empty} title=${t`No documents yet`}>${t`New and changed documents are listed here.`}<//>`
        : html`<ul class="recent" aria-busy=${!overview}>
            ${rows.map((row) => html`<${Row} ...${row} key=${row.type.name + row.document.documentId} />`)}
          </ul>`}
    <div class="home-work"><${Work} /></div>
  </div>`;
}

/** @param {{type: import("./model.js").Type, document: import("./overview.js").Changed}} props */
function Row({ type, document }) {
  const title = document.title || document.documentId || type.label;
  const edit = addressTo("document", { type: type.name, id: document.documentId });
  return html`<li class="recent-row">
    <span class="recent-title">${edit ? html`<${Link} to=${edit}>${title}<//>` : title}</span>
    <${Link} class="recent-type" to=${addressTo("list", { type: type.name })}>${type.label}<//>
    <time class="recent-time" datetime=${document.updatedAt} title=${timestamp(document.updatedAt)}>
      ${ago(document.updatedAt)}
    </time>
  </li>`;
}
