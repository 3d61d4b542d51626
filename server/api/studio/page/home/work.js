/** The part of the first page about work: changes by others, own drafts, branches to merge, and problems. */

import { addressTo } from "../addresses.js";
import { ask } from "../api.js";
import { documentsText, useBranches } from "../branches/requests.js";
import { useStudio } from "../context.js";
import { plural, t } from "../language.js";
import { Link } from "../router.js";
import { useCount } from "../site/links.js";
import { useRequest } from "../store/requests.js";
import { ago, counted, timestamp } from "../text.js";
import { html, useEffect, useState } from "../vendor/preact.js";
import { lastVisit, noteVisit } from "./visit.js";

const EVERY_MS = 20_000;
const SHOWN_BRANCHES = 5;

/**
 * @typedef {object} Changed  A document, as returned by GET /events/activity.
 * @property {string} documentId
 * @property {string} type
 * @property {string} locale
 * @property {string} event
 * @property {string} at
 * @property {string | null} title
 * @property {string | null} by
 * @property {string | null} href
 */

export function Work() {
  const { model } = useStudio();
  const [since, setSince] = useState(() => lastVisit(model));
  const load = (/** @type {AbortSignal} */ signal) => ask("events/activity", { query: { since }, signal });
  const options = { everyMs: EVERY_MS, isContent: true, isLate: true };
  const { value } = useRequest(model.isServed && model.listed.length ? `activity ${since}` : "", load, options);
  useEffect(() => {
    if (value) noteVisit(model, value.meta);
  }, [value]);
  if (!model.isServed) return null;
  const read = () => {
    noteVisit(model, value?.meta, true);
    setSince(lastVisit(model));
  };
  const { drafts = [], others = [] } = value?.data ?? {};
  const more = (value?.meta.others ?? 0) - others.length;
  return html`${others.length > 0 && html`<${Part} title=${t`Changed by others since your last visit`}>
      <${Changes} list=${others} />
      ${more > 0 && html`<p class="site-note">${t`And ${counted(more)} more`}</p>`}
      <button class="button" type="button" onClick=${read}>${t`Mark as read`}</button>
    <//>`}
    ${drafts.length > 0 && html`<${Part} title=${t`My drafts`}><${Changes} list=${drafts} /><//>`}
    ${model.mayBranch("find") && html`<${Waiting} />`}
    ${model.mayServed("problems", "find") && html`<${Problems} />`}`;
}

/** @param {{title: string, children?: any}} props */
function Part({ title, children }) {
  return html`<section class="sessions" aria-label=${title}>
    <h2 class="sessions-title">${title}</h2>
    ${children}
  </section>`;
}

/** @param {{list: Changed[]}} props */
function Changes({ list }) {
  const { model } = useStudio();
  return html`<ul class="sessions-list">
    ${list.map(({ type: name, documentId: id, locale, event, at, title, by, href }) => {
      const type = model.typeNamed(name);
      /** @type {Record<string, string>} */
      const params = type?.localized && locale !== model.defaultLocale ? { locale } : {};
      const text = title || id;
      return html`<li class="session" key=${`${name} ${id} ${locale}`}>
        <span class="account-name">
          ${href ? html`<${Link} to=${addressTo("document", { type: name, id }, params)}>${text}<//>` : text}</span>
        <span class="account-state">${[type?.label ?? name, event === "entry.delete" && t`deleted`,
          by === "owner" ? t`owner` : by]
          .filter(Boolean).join(", ")}, <time datetime=${at} title=${timestamp(at)}>${ago(at)}</time></span>
      </li>`;
    })}
  </ul>`;
}

function Waiting() {
  const { list = [] } = useBranches(true, true);
  const waiting = list.filter(({ served, merged }) => !served && !merged);
  if (!waiting.length) return null;
  return html`<${Part} title=${t`Branches to merge`}>
    <ul class="sessions-list">
      ${waiting.slice(0, SHOWN_BRANCHES).map((branch) => html`<li class="session" key=${branch.name}>
        <span class="account-name"><${Link} to=${addressTo("branch", { name: branch.name })}>${branch.name}<//></span>
        <span class="account-state">${documentsText(branch)}</span>
      </li>`)}
    </ul>
    ${waiting.length > SHOWN_BRANCHES && html`<${Link} to=${addressTo("branches")}>${t`All branches`}<//>`}
  <//>`;
}

function Problems() {
  const count = useCount("problems", EVERY_MS);
    return count > 0 && html`<${Part} title=${t`Problems`}>
    <p><${Link} to=${addressTo("problems")}>${plural(count, {
      one: "{0} problem in the site's files",
      other: "{0} problems in the site's files",
    })}<//></p>
  <//>`;
}
