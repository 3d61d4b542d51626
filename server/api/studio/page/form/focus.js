/** Moves the focus to a field of a form. Collapsed components that contain the field are opened first. */

import { useEffect } from "../vendor/preact.js";
import { idOf } from "./field.js";

const FRAMES = 120; // for which a field is waited for, once what is above it has opened
const SETTLED_MS = 250;
const INPUTS = "input, textarea, select, button, summary, [contenteditable=true], [tabindex]";

/**
 * Focus the field at a path, or the nearest field above it. Resolves to whether there is one.
 * @param {string[]} path
 */
export async function focusField(path) {
  for (let end = 2; end <= path.length; end++) {
    const entry = await shown(`${idOf(path.slice(0, end))}-entry`, end < path.length && isIndex(path[end - 1]));
    if (entry instanceof HTMLDetailsElement) entry.open = true;
  }
  const field = await shown(isIndex(path[path.length - 1]) ? `${idOf(path)}-entry` : idOf(path), true);
  if (!field) return false;
  const input = field.matches(INPUTS) && !field.matches("[role=group]") ? field : field.querySelector(INPUTS);
  const target = /** @type {HTMLElement} */ (input ?? field);
  target.focus({ preventScroll: true });
  const scroll = () => (field.closest(".form-field") ?? field).scrollIntoView({ block: "center" });
  scroll();
  // Components that were opened above it and editors that are being loaded may have moved the field.
  setTimeout(() => document.activeElement === target && scroll(), SETTLED_MS);
  return true;
}

/** @param {string} part */
const isIndex = (part) => /^\d+$/.test(part);

/**
 * Return the element with an id as soon as it is in the page.
 * @param {string} id
 * @param {boolean} expected  Whether to wait for the element.
 * @returns {Promise<HTMLElement | null>}
 */
async function shown(id, expected) {
  for (let left = expected ? FRAMES : 0; ; left--) {
    const found = document.getElementById(id);
    if (found || left <= 0) return found;
    await new Promise((next) => requestAnimationFrame(next));
  }
}

/**
 * Focus the field that the URL names, once the form is displayed.
 * @param {string} field  The path with dots, or "" for none.
 * @param {boolean} ready
 */
export function useWantedField(field, ready) {
  useEffect(() => {
    if (ready && field) focusField(field.split("."));
  }, [field, ready]);
}
