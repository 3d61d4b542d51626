/** The input for a picture's alternative text within a list. Enter goes to the input of the next picture. */

import { t } from "../language.js";
import { showError, showNotice, useMessage } from "../store/messages.js";
import { html, useRef, useState } from "../vendor/preact.js";
import { describeFile } from "./requests.js";

/** Return the message about somebody else's text. @param {string} text */
export const changedText = (text) =>
  t`Somebody else has changed this text to “${text}”. Save again to replace it.`;

/** @param {{file: any}} props  A file, as returned by the API. */
export function AlternativeText({ file }) {
  const place = `text-${file.documentId}`;
  const [text, setText] = useState(file.alternativeText ?? "");
  const saved = useRef(text);
  const message = useMessage(place);
  const save = async () => {
    const sent = text.trim();
    if (sent === saved.current) return;
    try {
      await describeFile(file.id, { alternativeText: sent || null }, { alternativeText: saved.current });
      saved.current = sent;
      showNotice(place, t`Saved`);
    } catch (/** @type {any} */ error) {
      if (error.status !== 412) return showError(place, error.message);
      saved.current = error.details.current.alternativeText ?? ""; // Saving again replaces it, and Escape shows it.
      showError(place, changedText(saved.current));
    }
  };
  /** @param {KeyboardEvent} event */
  const press = (event) => {
    const step = { Enter: 1, ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape") setText(saved.current);
    if (!step || event.isComposing) return;
    event.preventDefault();
    const all = /** @type {HTMLElement[]} */ ([...document.querySelectorAll(".media-text input")]);
    const next = all[all.indexOf(/** @type {HTMLElement} */ (event.currentTarget)) + step];
    if (next) next.focus();
    else save();
  };
  const { isError, text: note } = message;
  return html`<span class="media-text">
    <input class="input" aria-label=${t`Alternative text of ${file.name}`} value=${text} placeholder=${t`Not described`}
      aria-invalid=${isError ? "true" : undefined} onBlur=${save} onKeyDown=${press}
      onInput=${(/** @type {any} */ event) => setText(event.target.value)} />
    <span class=${isError ? "field-error" : "hint"} role=${isError ? "alert" : "status"}>${note}</span>
  </span>`;
}
