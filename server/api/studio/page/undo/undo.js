/** The bar that says what was done last, and undoes it. */

import { ApiError, ask } from "../api.js";
import { Icon } from "../icons.js";
import { UNDO, clearMessage, offerUndo, showError, useMessage } from "../store/messages.js";
import { reloadContent } from "../store/requests.js";
import { html, useEffect, useRef, useState } from "../vendor/preact.js";

/** Has the server keep what a write replaces, so that it can be undone. */
export const UNDOABLE = { Prefer: "undo" };

const FAILURE = "undo-failure"; // the place of messages

/**
 * Undo the parts of a write, the last one first. Throws ApiError: what was undone until then stays so.
 * @param {string[]} ids  Those that are left are in it after that.
 */
async function undoAll(ids) {
  while (ids.length) {
    await ask(`batch/undo/${encodeURIComponent(ids[ids.length - 1])}`, { method: "POST" });
    ids.pop();
  }
}

export function UndoBar() {
  const message = useMessage(UNDO);
  const failure = useMessage(FAILURE);
  const [busy, setBusy] = useState(false);
  const bar = useRef(/** @type {HTMLElement | null} */ (null));
  const { text, undo: ids = [] } = message;
  useEffect(() => {
    clearMessage(FAILURE);
    // What had the focus is gone with what was selected, or with the page.
    if (ids.length && document.activeElement === document.body) bar.current?.querySelector("button")?.focus();
  }, [message]);
  const undo = async () => {
    if (busy) return;
    setBusy(true);
    try {
      await undoAll(ids);
      offerUndo("Undone", []);
      reloadContent();
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      const { status, message: reason } = error;
      // Without the server, the button stays: the page says why nothing happens.
      if (status !== 0) showError(FAILURE, status === 409 ? "Can't undo: the document has changed since." : reason);
    } finally {
      setBusy(false);
    }
  };
  return html`<div class=${`undo-bar ${text ? "is-shown" : ""}`} role="region" aria-label="Undo" ref=${bar}>
    <span role="status">${text}</span>
    <span class="field-error" role="alert">${failure.text}</span>
    ${ids.length > 0 && !failure.text && html`<button class="button" type="button" disabled=${busy}
      onClick=${undo}>Undo</button>`}
    ${text && html`<button class="icon-button" type="button" aria-label="Close" onClick=${() => clearMessage(UNDO)}>
      <${Icon} name="close" />
    </button>`}
  </div>`;
}
