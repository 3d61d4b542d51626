/** To look at what a save changes before it is made, for those who want that. */

import { Dialog } from "../dialog.js";
import { Loading } from "../states.js";
import { html, useCallback, useEffect, useState } from "../vendor/preact.js";
import { tryToSave, wordsOf } from "./changes.js";
import { Differences } from "./diff.js";
import { chooseToLook, looksFirst } from "./looks-first.js";

/** The box by which that is chosen. */
export function LooksFirst() {
  const [wanted, set] = useState(looksFirst());
  const choose = (/** @type {Event} */ event) => {
    const { checked } = /** @type {HTMLInputElement} */ (event.target);
    chooseToLook(checked);
    set(checked);
  };
  return html`<label class="file-choice">
    <input type="checkbox" checked=${wanted} onChange=${choose} /> Look at the change before saving
  </label>`;
}

/**
 * Saving, with a look at it first where that is wanted.
 * @param {import("../form/editing.js").Subject} subject
 * @param {any} editing
 * @param {boolean} mayRead  Whether files may be read.
 * @returns {{send: (publishes: boolean) => void, asked: boolean | null, close: () => void}}
 *   `asked`: what is looked at, whether it publishes; null for nothing.
 */
export function useReview(subject, editing, mayRead) {
  const [asked, ask] = useState(/** @type {boolean | null} */ (null));
  const send = useCallback(
    (/** @type {boolean} */ publishes) => (mayRead && looksFirst() ? ask(publishes) : editing.send(publishes)),
    [editing.send, mayRead],
  );
  return { send, asked, close: () => ask(null) };
}

/**
 * @param {{subject: import("../form/editing.js").Subject, editing: any, publishes: boolean, close: () => void}} props
 */
export function Review({ subject, editing, publishes, close }) {
  const [tried, set] = useState(/** @type {import("./changes.js").Tried} */ ({ files: null, error: "" }));
  useEffect(() => {
    const controller = new AbortController();
    tryToSave(subject, editing.state, publishes, controller.signal).then(
      (files) => set({ files, error: "" }),
      (error) => error.name !== "AbortError" && set({ files: [], error: wordsOf(error) }),
    );
    return () => controller.abort();
  }, []);
  const save = () => {
    close();
    editing.send(publishes);
  };
  const label = publishes ? "What publishing changes" : "What saving changes";
  return html`<${Dialog} label=${label} close=${close} class="is-wide">
    <h2 class="dialog-title">${label}</h2>
    <div class="review">
      ${tried.files ? html`<${Differences} files=${tried.files} />` : html`<${Loading} label="Trying it" />`}
      ${tried.error && html`<p class="file-note is-wrong" role="alert">${tried.error}</p>`}
      ${tried.files?.length === 0 && !tried.error && html`<p class="file-note">It changes no file.</p>`}
    </div>
    <div class="dialog-actions">
      <button class="button" type="button" onClick=${close}>Back</button>
      <button class="button primary" type="button" autofocus onClick=${save}>
        ${publishes ? "Publish" : "Save"}</button>
    </div>
  <//>`;
}
