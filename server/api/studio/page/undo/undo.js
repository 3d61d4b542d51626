/** The bar with a message about the latest change, and a button to undo it. */

import { ApiError, ask } from "../api.js";
import { Icon } from "../icons.js";
import { t } from "../language.js";
import { UNDO, clearMessage, offerUndo, showError, useMessage } from "../store/messages.js";
import { reloadContent } from "../store/requests.js";
import { html, useEffect, useRef, useState } from "../vendor/preact.js";

/** Makes the server store the files that a write replaces, so that the write can be undone. */
export const UNDOABLE = { Prefer: "undo" };

const FAILURE = "undo-failure"; // the place of messages

/**
 * Undo the parts of a write, the last part first. Throws ApiError; the parts that were already undone stay undone.
 * @param {string[]} ids  The ids. Afterwards, it contains only those that have not been undone.
 */
export async function undoAll(ids) {
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
  const { text, undo: ids = [], undone = reloadContent } = message;
  useEffect(() => {
    clearMessage(FAILURE);
    // The focused element was removed together with the selection or the page.
    if (ids.length && document.activeElement === document.body) bar.current?.querySelector("button")?.focus();
  }, [message]);
  const undo = async () => {
    if (busy) return;
    setBusy(true);
    try {
      await undoAll(ids);
      offerUndo(t`Undone`, []);
      undone();
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      const { status, message: reason } = error;
      // If the server is not reachable, the button stays. The page shows a message about the connection.
      const isDocument = status === 409 && !message.undone;
      if (status !== 0) showError(FAILURE, isDocument ? t`Can't undo: the document has changed since.` : reason);
    } finally {
      setBusy(false);
    }
  };
  return html`<div class=${`undo-bar ${text ? "is-shown" : ""}`} role="region" aria-label=${t`Undo`} ref=${bar}>
    <span role="status">${text}</span>
    <span class="field-error" role="alert">${failure.text}</span>
    ${ids.length > 0 && !failure.text && html`<button class="button" type="button" disabled=${busy}
      onClick=${undo}>${t`Undo`}</button>`}
    ${text && html`<button class="icon-button" type="button" aria-label=${t`Close`} onClick=${() => clearMessage(UNDO)}>
      <${Icon} name="close" />
    </button>`}
  </div>`;
}
