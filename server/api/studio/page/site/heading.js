/**
 * The heading of a page that is loaded when it is first shown: it sets the tab's title and the focus of screen readers.
 */

import { useEffect } from "../vendor/preact.js";

/** @param {import("../model.js").Model} model @param {string} name */
export function useHeading(model, name) {
  useEffect(() => {
    document.title = `${name} · ${model.siteName}`;
    const heading = /** @type {HTMLElement | null} */ (document.querySelector("main h1"));
    if (document.activeElement === document.body) heading?.focus({ preventScroll: true });
  }, [model, name]);
}
