/** A grid of files. The arrow keys move the focus between the elements of the class `media-open`, one for each file. */

import { html } from "../vendor/preact.js";

/** @param {{class: string, children?: any, [name: string]: any}} props */
export function FileGrid({ children, ...rest }) {
  return html`<ul ...${rest} onKeyDown=${moveFocus}>${children}</ul>`;
}

/** @param {KeyboardEvent} event */
function moveFocus(event) {
  const grid = /** @type {HTMLElement} */ (event.currentTarget);
  const all = /** @type {HTMLElement[]} */ ([...grid.querySelectorAll(".media-open")]);
  const at = all.findIndex((one) => one === document.activeElement);
  if (at < 0 || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
  const next = targetOf(event.key, all, at);
  if (next === undefined) return;
  event.preventDefault();
  all[next]?.focus();
}

/**
 * Return the index to which a key moves the focus, or undefined if the key does not move it.
 * @param {string} key
 * @param {HTMLElement[]} all
 * @param {number} at
 */
function targetOf(key, all, at) {
  if (key === "Home") return 0;
  if (key === "End") return all.length - 1;
  if (key === "ArrowLeft") return Math.max(at - 1, 0);
  if (key === "ArrowRight") return Math.min(at + 1, all.length - 1);
  if (key !== "ArrowUp" && key !== "ArrowDown") return undefined;
  const top = all[0].getBoundingClientRect().top;
  const columns = all.findIndex((one) => one.getBoundingClientRect().top > top + 1);
  const wide = columns < 0 ? all.length : columns;
  const next = at + (key === "ArrowDown" ? wide : -wide);
  return next < 0 || next >= all.length ? at : next;
}
