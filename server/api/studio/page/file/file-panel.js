/** The panel with the document's file: its path, the changes that a save would make, and its text. */

import { changedNames } from "../form/values.js";
import { t } from "../language.js";
import { Failure, Loading } from "../states.js";
import { clearMessage, showNotice, useMessage } from "../store/messages.js";
import { html, useEffect } from "../vendor/preact.js";
import { useDryRun } from "./changes.js";
import { Differences, Numbered } from "./diff.js";
import { ReviewChoice } from "./review.js";
import { useSource } from "./source.js";

/** @typedef {import("./source.js").Source} Source */

const COPY = "copy-path"; // the place of messages

/** @param {import("../documents/panels.js").PanelProps} props */
export function FilePanel({ subject, editing }) {
  const { state } = editing;
  const isThere = Boolean(state.version);
  const changed = !isThere || changedNames(state.base, state.values).length > 0;
  const dryRun = useDryRun(subject, state, { hasChanges: changed });
  const { source, failure } = useSource(subject, state.version);
  return html`<div class="file">
    ${source && html`<${Paths} source=${source} />`}
    <section>
      <h3>${t`Changes made by saving`}</h3>
      <${Preview} changed=${changed} dryRun=${dryRun} />
      <${ReviewChoice} />
    </section>
    ${isThere && html`<section>
      <h3>${t`Current file`}</h3>
      ${failure && html`<${Failure} error=${failure} />`}
      ${source ? html`<${Whole} source=${source} />` : !failure && html`<${Loading} />`}
    </section>`}
  </div>`;
}

/** @param {{changed: boolean, dryRun: import("./changes.js").DryRun}} props */
function Preview({ changed, dryRun: { files, error } }) {
  if (!changed) return html`<p class="file-note">${t`No changes. Everything is saved.`}</p>`;
  if (error) return html`<p class="file-note is-wrong" role="status">${error}</p>`;
  if (!files) return html`<${Loading} label=${t`Checking`} />`;
  if (!files.length) return html`<p class="file-note">${t`Your role can't read the file.`}</p>`;
  return html`<${Differences} files=${files} />`;
}

/** @param {{source: Source}} props */
function Paths({ source }) {
  return html`<section>
    <h3 class="unseen">${t`Location`}</h3>
    <div class="file-path"><span class="file-name">${source.path}</span><${Copy} text=${source.path} /></div>
    ${source.files.length > 1 && html`<ul class="file-others" aria-label=${t`All files of this document`}>
      ${source.files.map(({ path, locale, status }) => html`<li key=${path}>
        <span class="file-name">${path}</span>
        <span class="file-note">${locale}, ${status}</span>
      </li>`)}
    </ul>`}
  </section>`;
}

/** @param {{text: string}} props */
function Copy({ text }) {
  const message = useMessage(COPY);
  const show = (/** @type {string} */ words) => showNotice(COPY, words);
  const copy = () => navigator.clipboard.writeText(text).then(() => show(t`Copied`), () => show(t`Copying is blocked`));
  useEffect(() => clearMessage(COPY), [text]);
  return html`<button class="button quiet" type="button" aria-label=${t`Copy path`} onClick=${copy}>${t`Copy`}</button>
    <span class="file-note" role="status">${message.text}</span>`;
}

/** @param {{source: Source}} props */
function Whole({ source: { path, text, problem } }) {
  const place = problem?.line ? ` (${t`line ${problem.line}`})` : "";
  const reason = problem && `${problem.message}${problem.fix ? ` (${problem.fix})` : ""}`;
  return html`${problem && html`<p class="file-note is-wrong">
      ${t`The file can't be read${place}: ${reason}. The form shows the last readable content.`}</p>`}
    <${Numbered} text=${text} label=${t`Text of ${path}`} wrong=${problem?.line} />`;
}
