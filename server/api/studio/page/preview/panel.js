/** The panel with the preview of a document on the site's own pages, also while the document is being edited. */

import { focusField } from "../form/focus.js";
import { t } from "../language.js";
import { inSentence, labelOf } from "../text.js";
import { openPanel } from "../documents/panel-address.js";
import { navigate } from "../router.js";
import { Empty } from "../states.js";
import { clearMessage, showError, useMessage } from "../store/messages.js";
import { html, useEffect, useState } from "../vendor/preact.js";
import { previewAddress } from "./address.js";
import { addressOfSource, isOf } from "./elsewhere.js";
import { Framed } from "./framed.js";
import { fieldAt, readSource } from "./source.js";

const PLACE = "preview"; // of messages
const MESSAGE_MS = 6000;
const NARROW = "(max-width: 70rem)"; // where a panel covers the form, as panels.css has it
const NOT_HERE = t`The part you clicked is not in this form`;
const NOT_YOURS = t`The part you clicked belongs to content that you can't open`;

/** @param {import("../documents/panels.js").PanelProps} props */
export function Preview({ subject, editing }) {
  const { model, type, locale } = subject;
  const { version } = editing.state;
  const [status, setStatus] = useState(subject.drafts ? "draft" : "published");
  const message = useMessage(PLACE);
  useEffect(() => {
    if (!message.text) return;
    const timer = setTimeout(() => clearMessage(PLACE), MESSAGE_MS);
    return () => clearTimeout(timer);
  }, [message]);
  if (!type.preview) return html`<${HowTo} type=${type} />`;

  const open = async (/** @type {unknown} */ clicked) => {
    const source = readSource(clicked);
    if (!source) return showError(PLACE, NOT_HERE);
    if (!isOf(source, subject)) {
      const panel = matchMedia(NARROW).matches ? "" : "preview";
      const place = await addressOfSource(model, source, panel);
      if (!place) return showError(PLACE, NOT_YOURS);
      clearMessage(PLACE);
      return navigate(place); // It asks about what is not saved, as any leaving does.
    }
    const field = fieldAt(model, type.attributes, editing.state.values, source.path);
    if (!field) return showError(PLACE, NOT_HERE);
    clearMessage(PLACE);
    return showField(field);
  };
  const { branch } = model.version;
  const namesBranch = type.preview.includes("{branch}") && !type.attributes.branch;
  if (branch && !namesBranch) return html`<${LiveOnly} />`;
  const document = status === "draft" ? version?.document : version?.published;
  const address = document && previewAddress(type.preview, document, status, document.locale ?? locale, branch);
  const statuses = subject.drafts && html`<${Statuses} status=${status} choose=${setStatus} />`;
  if (!address?.url) {
    const reason = address ? html`<${Incomplete} missing=${address.missing} />` : html`<${Unpublished} />`;
    return html`<div class="preview"><div class="preview-tools">${statuses}</div>${reason}</div>`;
  }
  const typing = status === "draft" || !subject.drafts;
  const framed = { subject, editing, address, typing, statuses, open, note: message.text };
  return html`<${Framed} key=${address.url} ...${framed} />`;
}

/**
 * Show a field of the form. If the panel covers the form, close the panel.
 * @param {string[]} field
 */
function showField(field) {
  if (matchMedia(NARROW).matches) openPanel("");
  focusField(field);
}

/** @param {{status: string, choose: (status: string) => void}} props */
function Statuses({ status, choose }) {
  return html`<div class="preview-choice" role="group" aria-label=${t`Version`}>
    ${Object.entries({ draft: t`Draft`, published: t`Published` }).map(([name, label]) => html`<button
      class="preview-option" type="button" key=${name}
      aria-pressed=${name === status} onClick=${() => choose(name)}>${label}</button>`)}
  </div>`;
}

/** @param {{type: import("../model.js").Type}} props */
function HowTo({ type }) {
  const line = `preview:\n  ${type.name}: https://example.org/preview?id={documentId}&status={status}`;
  return html`<div class="state">
    <p class="state-title">${t`No preview is set up`}</p>
    <p class="state-text">
      ${t`To preview documents of this type, add its page to ${html`<code>site.yaml</code>`}:`}</p>
    <pre class="preview-line">${line}</pre>
  </div>`;
}

/** @param {{missing: string[]}} props */
function Incomplete({ missing }) {
  const needed = missing.map((name) => inSentence(labelOf(name))).join(", ");
  return html`<${Empty} title=${t`This document has no address yet`}>
    ${t`The address needs these fields: ${needed}. Fill them in and save.`}<//>`;
}

const LiveOnly = () => html`<${Empty} title=${t`The preview shows only the live site`}>
  ${t`To preview branches, the preview's URL in site.yaml must contain the placeholder {branch}.`}<//>`;

const Unpublished = () => html`<${Empty} title=${t`Nothing is published yet`}>${t`Visitors do not see it.`}<//>`;
