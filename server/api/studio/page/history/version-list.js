/** The list of a document's versions, newest first, with author, time, message and changed fields. */

import { t } from "../language.js";
import { Empty } from "../states.js";
import { StatusMark } from "../documents/status.js";
import { ago, timestamp } from "../text.js";
import { html } from "../vendor/preact.js";
import { deedOf, keyOf, whoOf } from "./versions.js";

/**
 * @param {{subject: import("../documents/form.js").Subject, versions: import("./versions.js").Versions,
 *   open: (key: string) => void}} props
 */
export function VersionList({ subject, versions: { list = [], hasMore, more, error }, open }) {
  if (!list.length) return html`<${Empty} title=${t`No versions yet`}>
    ${t`Versions appear here once they are committed.`}<//>`;
  return html`
    <ol class="versions" aria-label=${t`Versions`}>
      ${list.map((version) => html`<li key=${keyOf(version)}>
        <${Row} version=${version} drafts=${subject.drafts} open=${open} />
      </li>`)}
    </ol>
    ${error && html`<p class="field-error" role="alert">${error.message}</p>`}
    ${hasMore && html`<button class="button" type="button" onClick=${more}>${t`Show earlier versions`}</button>`}`;
}

/** @param {{version: import("./versions.js").Version, drafts: boolean, open: (key: string) => void}} props */
function Row({ version, drafts, open }) {
  const { date, status, message, commit } = version;
  const [subjectLine] = message.split("\n");
  return html`<button class=${`version ${commit ? "" : "is-open"}`} type="button" data-version=${keyOf(version)}
    onClick=${() => open(keyOf(version))}>
    <span class="version-head">
      <span class="version-who">${whoOf(version)}</span>
      ${date && html`<time class="version-time" datetime=${date} title=${timestamp(date)}>${ago(date)}</time>`}
    </span>
    <span class="version-deed">${deedOf(version)}</span>
    ${subjectLine && html`<span class="version-message">${subjectLine}</span>`}
    ${drafts && html`<${StatusMark} status=${status} />`}
  </button>`;
}
