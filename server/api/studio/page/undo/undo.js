/** What was done last and can be taken back, and the bar that says so. */

import { ApiError, ask } from "../api.js";
import { useStudio } from "../context.js";
import { Icon } from "../icons.js";
import { html, useEffect, useRef, useState } from "../vendor/preact.js";

/** Has the server keep what a write replaces, so that it can be undone. */
export const UNDOABLE = { Prefer: "undo" };

/**
 * @typedef {object} Offer
 * @property {string} text  What was done.
 * @property {string[]} ids  Of its parts, in the order in which they were done; none where it can't be undone.
 */

/** @type {Offer | null} */
let offered = null;
/** @type {Set<() => void>} */
const changes = new Set();
/** @type {Set<() => void>} */
const undone = new Set();

/** @param {Offer | null} offer  null to offer nothing any more. */
export function offerUndo(offer) {
  offered = offer;
  changes.forEach((listener) => listener());
}

/**
 * Call a function when something was undone.
 * @param {() => void} listener
 */
export const whenUndone = (listener) => listen(undone, listener);

/** @param {Set<() => void>} listeners @param {() => void} listener */
function listen(listeners, listener) {
  listeners.add(listener);
  return () => {
    listeners.delete(listener);
  };
}

/**
 * Take back what is offered, its last part first. Throws ApiError: what was taken back until then stays so.
 * @param {Offer} offer
 */
async function takeBack(offer) {
  for (let left = [...offer.ids]; left.length; left = left.slice(0, -1)) {
    await ask(`batch/undo/${encodeURIComponent(left[left.length - 1])}`, { method: "POST" });
    offer.ids = left.slice(0, -1);
  }
  undone.forEach((listener) => listener());
}

export function UndoBar() {
  const { refresh } = useStudio();
  const [offer, setOffer] = useState(offered);
  const [busy, setBusy] = useState(false);
  const [wrong, setWrong] = useState("");
  const bar = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => listen(changes, () => setOffer(offered)), []);
  useEffect(() => {
    setWrong("");
    // What had the focus is gone with what was selected, or with the page.
    if (offer?.ids.length && document.activeElement === document.body) bar.current?.querySelector("button")?.focus();
  }, [offer]);
  const undo = async () => {
    if (!offer || busy) return;
    setBusy(true);
    try {
      await takeBack(offer);
      offerUndo({ text: "Undone", ids: [] });
      refresh();
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      // Without the server, the button stays: the page says why nothing happens.
      if (error.status !== 0) setWrong(error.status === 409 ? "Not undone: it was changed since." : error.message);
    } finally {
      setBusy(false);
    }
  };
  return html`<div class=${`undo-bar ${offer ? "is-shown" : ""}`} role="region" aria-label="Undo" ref=${bar}>
    <span role="status">${offer?.text}</span>
    <span class="field-error" role="alert">${wrong}</span>
    ${offer && offer.ids.length > 0 && !wrong && html`<button class="button" type="button" disabled=${busy}
      onClick=${undo}>Undo</button>`}
    ${offer && html`<button class="icon-button" type="button" aria-label="Close" onClick=${() => offerUndo(null)}>
      <${Icon} name="close" />
    </button>`}
  </div>`;
}
