/** A dialog above the page: the browser keeps the focus in it, closes it on Escape, and gives the focus back. */

import { html, useLayoutEffect, useRef } from "./vendor/preact.js";

/** @param {{label: string, close: () => void, children?: any, class?: string}} props */
export function Dialog({ label, close, children, class: name = "" }) {
  const dialog = useRef(/** @type {HTMLDialogElement | null} */ (null));
  useLayoutEffect(() => {
    const shown = dialog.current;
    shown?.showModal();
    return () => shown?.close(); // which is what gives the focus back
  }, []);
  /** @param {MouseEvent} event */
  const outside = (event) => event.target === dialog.current && close();
  return html`<dialog class=${`dialog ${name}`} aria-label=${label} ref=${dialog} onClick=${outside}
    onCancel=${(/** @type {Event} */ event) => { event.preventDefault(); close(); }}>
    <div class="dialog-body">${children}</div>
  </dialog>`;
}
