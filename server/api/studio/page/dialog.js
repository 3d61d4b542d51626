/** A modal dialog. The browser keeps the focus in it, closes it on Escape, and then returns the focus. */

import { t } from "./language.js";
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
  /** @param {KeyboardEvent} event */
  const press = (event) => {
    if (event.key !== "Escape") return;
    event.stopPropagation(); // It closes nothing else.
    const isOfInput = event.isComposing || /** @type {HTMLInputElement} */ (event.target).type === "search";
    if (event.defaultPrevented || isOfInput) return;
    // On a second Escape without other input in between, Chromium would close the dialog and fire no `cancel` event.
    event.preventDefault();
    close();
  };
  return html`<dialog class=${`dialog ${name}`} aria-label=${label} ref=${dialog} onClick=${outside} onKeyDown=${press}
    onCancel=${(/** @type {Event} */ event) => { event.preventDefault(); close(); }}>
    <div class="dialog-body">${children}</div>
  </dialog>`;
}

/**
 * A dialog that asks for confirmation of an action.
 * @param {{title: string, text: string, label: string, confirm: () => void, close: () => void, danger?: boolean}} props
 */
export function Question({ title, text, label, confirm, close, danger }) {
  return html`<${Dialog} label=${title} close=${close}>
    <h2 class="dialog-title">${title}</h2>
    <p>${text}</p>
    <${Buttons} close=${close} label=${label} ...${{ confirm, danger }} />
  <//>`;
}

/**
 * The buttons of a dialog: to cancel, and to confirm. Without `confirm`, the second one submits the form. The text of
 * an error is beside them, because they stay in view if the dialog scrolls.
 * @param {{close: () => void, label: string, confirm?: () => void, disabled?: boolean, danger?: boolean,
 *   error?: string, errorId?: string, isBack?: boolean}} props  `isBack` is whether closing returns to a form.
 */
export function Buttons({ close, label, confirm, disabled, danger, error, errorId, isBack }) {
  return html`<div class="dialog-actions">
    <p class="field-error" role="alert" id=${errorId}>${error}</p>
    <button class="button" type="button" onClick=${close}>${isBack ? t`Back` : t`Cancel`}</button>
    <button class=${`button ${danger ? "danger" : "primary"}`} type=${confirm ? "button" : "submit"}
      disabled=${disabled} onClick=${confirm}>${label}</button>
  </div>`;
}
