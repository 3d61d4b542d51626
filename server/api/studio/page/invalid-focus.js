/** Moves the focus to the field that an error is about. */

import { useEffect } from "./vendor/preact.js";

/**
 * Focus the first invalid field in a part of the page, whenever errors were found.
 * @param {any} errors  A new object after each refused attempt.
 * @param {string} part  A CSS selector.
 */
export function useInvalidFocus(errors, part) {
  useEffect(() => {
    const field = document.querySelector(`${part} [aria-invalid=true]`);
    if (field instanceof HTMLElement) field.focus();
  }, [errors]);
}
