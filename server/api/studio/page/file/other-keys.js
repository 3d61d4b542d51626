/**
 * The keys of a file that are not attributes of its content type, displayed as source below the form. Users with the
 * permission can edit them.
 */

import { ApiError, ask } from "../api.js";
import { rowsOf, typedInto } from "../editor/source-input.js";
import { localeParam } from "../documents/beginning.js";
import { t } from "../language.js";
import { clearMessage, showError, useMessage } from "../store/messages.js";
import { html, useLayoutEffect, useRef, useState } from "../vendor/preact.js";
import { Numbered } from "./diff.js";
import { readSource, sourcePath, useSource } from "./source.js";

/**
 * @typedef {import("../documents/form.js").Subject} Subject
 * @typedef {import("./source.js").Source} Source
 */

const CHANGED = t`The file has changed since you opened it. Its current text is above. Saving replaces it with yours.`;
const OTHER_KEYS = "other-keys"; // the place of messages

/** @param {{subject: Subject, editing: any}} props */
export function OtherKeys({ subject, editing }) {
  const { source } = useSource(subject, editing.state.version);
  const [open, set] = useState(false);
  if (!source?.otherKeys && !open) return null; // There is nothing else, or it can't be read, which the panel says.
  const close = () => set(false);
  const saved = () => {
    close();
    editing.hear();
  };
  return html`<section class="other-keys" aria-labelledby="other-keys">
    <h2 id="other-keys">${t`Other keys in the file`}</h2>
    ${source && open && html`<${Edit} ...${{ subject, source, close, saved }} />`}
    ${source && !open && html`<p class="file-note">${t`${subject.type.plural} have no fields for these keys. They are in
      ${source.path}; saving the form leaves them as they are.`}</p>
      <${Numbered} text=${source.otherKeys} label=${t`Other keys in the file`} />
      ${mayWrite(subject, source) && html`<p><button class="button" type="button" onClick=${() => set(true)}>
        ${t`Edit`}</button></p>`}`}
  </section>`;
}

/**
 * Return whether the user may write the file. For a draft, the permission to write drafts is enough.
 * @param {Subject} subject
 * @param {Source} source
 */
function mayWrite({ model, type }, { status }) {
  const drafts = status === "draft" && model.may(type, "updateDraft");
  return model.allows("source", "write") && (drafts || model.may(type, "update"));
}

/**
 * A text area for the keys. It preserves the file's line endings.
 * @param {{subject: Subject, source: Source, close: () => void, saved: () => void}} props
 */
function Edit({ subject, source, close, saved }) {
  const [text, type] = useState(source.otherKeys);
  const [base, setBase] = useState(source);
  const [busy, setBusy] = useState(false);
  const [hasChanged, setChanged] = useState(false);
  const message = useMessage(OTHER_KEYS);
  const area = useRef(/** @type {HTMLTextAreaElement | null} */ (null));
  useLayoutEffect(() => area.current?.focus(), []);
  const save = async () => {
    if (busy) return;
    setBusy(true);
    clearMessage(OTHER_KEYS);
    try {
      await writeKeys(subject, base, text);
      saved();
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (error.status === 412) setBase(await readSource(subject));
      setBusy(false);
      setChanged(error.status === 412);
      showError(OTHER_KEYS, error.status === 412 ? CHANGED : error.message);
      area.current?.focus();
    }
  };
  const press = (/** @type {KeyboardEvent} */ event) => {
    if (event.key.toLowerCase() !== "s" || !(event.ctrlKey || event.metaKey) || event.altKey) return;
    event.preventDefault();
    event.stopPropagation(); // It saves the keys, not the form.
    save();
  };
  return html`
    ${hasChanged && html`<${Numbered} text=${base.otherKeys} label=${t`Current text of the file`} />`}
    <textarea class="input lines is-code" ref=${area} aria-labelledby="other-keys" spellcheck=${false} value=${text}
      rows=${rowsOf(text)} aria-describedby="other-keys-error" aria-invalid=${message.text ? "true" : undefined}
      onInput=${(/** @type {Event} */ event) => type(typedInto(text, event))} onKeyDown=${press} />
    <p class="field-error" id="other-keys-error" role="alert">${message.text}</p>
    <p class="theirs-choice">
      <button class="button primary" type="button" disabled=${busy || text === base.otherKeys}
        onClick=${save}>${t`Save keys`}</button>
      <button class="button" type="button" onClick=${close}>${t`Back`}</button>
    </p>`;
}

/**
 * Write the other keys of a file, provided that the file has not changed since it was read. Throws ApiError.
 * @param {Subject} subject
 * @param {Source} source
 * @param {string} otherKeys
 */
async function writeKeys(subject, { status, etag }, otherKeys) {
  const query = { ...localeParam(subject), ...(status === "draft" ? { status } : {}) };
  const headers = { "If-Match": etag };
  await ask(sourcePath(subject), { method: "PUT", query, headers, body: { data: { otherKeys } } });
}
