/**
 * Restores earlier values: single values are put into the form as unsaved changes, and a whole version is restored by
 * the API.
 */

import { ask } from "../api.js";
import { Buttons, Dialog } from "../dialog.js";
import { localeParam } from "../documents/beginning.js";
import { plural, t } from "../language.js";
import { labelOf } from "../text.js";
import { Loading } from "../states.js";
import { clearMessage, showError, useMessage } from "../store/messages.js";
import { keyOf, useRequest } from "../store/requests.js";
import { html, useState } from "../vendor/preact.js";
import { compare } from "./comparison.js";
import { historyPath } from "./versions.js";

/** @typedef {import("./versions.js").Version} Version */

const DIALOG = "restore"; // the place of messages

/**
 * A dialog that asks for confirmation before a whole version replaces the current one, and describes the consequences.
 * @param {{subject: import("../documents/form.js").Subject, editing: any, version: Version, unsaved: string[],
 *   close: () => void, done: () => void}} props
 */
export function RestoreWhole({ subject, editing, version, unsaved, close, done }) {
  const [busy, setBusy] = useState(false);
  const message = useMessage(DIALOG);
  const { drafts } = subject;
  const now = { ...version, commit: "", status: /** @type {Version["status"]} */ (drafts ? "draft" : "published") };
  const { value, error } = useRequest(keyOf("restore", subject, version), (signal) => {
    return compare(subject, version, now, signal);
  });
  const names = value ? Object.keys(value.differences) : null;
  const gone = value?.unread.from ?? [];
  const errorText = message.text || error?.message;
  const send = async () => {
    setBusy(true);
    clearMessage(DIALOG);
    try {
      await restore(subject, version, editing.state.version?.etag ?? "");
      done();
    } catch (refused) {
      setBusy(false);
      showError(DIALOG, wordsOf(/** @type {any} */ (refused)));
    }
  };
  const kept = unsaved.filter((name) => names?.includes(name));
  return html`<${Dialog} label=${t`Restore this version?`} close=${close}>
    <h2 class="dialog-title">${t`Restore this version?`}</h2>
    ${names
      ? html`<${Consequences} ...${{ names, gone, kept, drafts }} />`
      : !errorText && html`<${Loading} label=${t`Comparing`} />`}
    <${Buttons} close=${close} label=${t`Restore`} confirm=${send} disabled=${busy || !names?.length}
      error=${errorText} />
  <//>`;
}

/** @param {{names: string[], gone: string[], kept: string[], drafts: boolean}} props */
function Consequences({ names, gone, kept, drafts }) {
  if (!names.length) return html`<p>${t`The document already has this content.`}</p>`;
  return html`
    <p>${drafts ? changesOfDraft(names.length) : changesNow(names.length)}</p>
    <ul class="dialog-list restored-fields">${names.map((name) => html`<li key=${name}>${labelOf(name)}</li>`)}</ul>
    ${kept.length > 0 && html`<p>${t`Your unsaved values stay in the form, next to the restored ones:
      ${kept.map(labelOf).join(", ")}.`}</p>`}
    ${gone.length > 0 && html`<${Gone} names=${gone} />`}`;
}

/** @param {number} count */
function changesOfDraft(count) {
  return plural(count, {
    one: "One field changes, in the draft. The published version stays the same until you publish.",
    other: "{0} fields change, in the draft. The published version stays the same until you publish.",
  });
}

/** @param {number} count */
function changesNow(count) {
  return plural(count, { one: "One field changes immediately.", other: "{0} fields change immediately." });
}

/**
 * The values of a version that can no longer be restored, because their attributes do not exist.
 * @param {{names: string[]}} props
 */
export function Gone({ names }) {
  return html`<p class="hint history-gone">${plural(names.length, {
    one: "{1} is no longer part of this content type and can’t be restored.",
    other: "{1} are no longer part of this content type and can’t be restored.",
  }, names.map((name) => t`“${name}”`).join(", "))}</p>`;
}

/**
 * A dialog that asks for confirmation before the typed value of a field is replaced.
 * @param {{label: string, close: () => void, put: () => void}} props
 */
export function ReplaceUnsaved({ label, close, put }) {
  return html`<${Dialog} label=${t`Replace unsaved changes?`} close=${close}>
    <h2 class="dialog-title">${t`Replace unsaved changes?`}</h2>
    <p>${t`${label} has unsaved changes. The earlier value replaces them.`}</p>
    <${Buttons} close=${close} label=${t`Replace`} confirm=${put} />
  <//>`;
}

/**
 * Restore a version, provided that the document has not changed since it was read. Throws ApiError.
 * @param {import("../documents/form.js").Subject} subject
 * @param {Version} version
 * @param {string} etag
 */
async function restore(subject, version, etag) {
  const { drafts } = subject;
  await ask(`${historyPath(subject)}/restore`, {
    method: "POST",
    query: { ...localeParam(subject), status: drafts ? "draft" : "", fields: ["documentId"] },
    body: { at: version.commit, status: version.status },
    headers: etag ? { "If-Match": etag } : {},
  });
}

/** @param {any} error */
function wordsOf({ status, message }) {
  if (status === 412) return t`Someone else changed the document. Close this dialog and review it first.`;
  return t`${message}. Nothing was changed.`;
}
