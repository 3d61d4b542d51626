/**
 * Functions for the page of every form: confirm leaving with unsaved changes, save on Ctrl-S, and show the first error.
 */

import { guardLeaving, isLeaveConfirmed } from "../router.js";
import { useEffect, useLayoutEffect, useState } from "../vendor/preact.js";
import { idOf } from "./field.js";

/**
 * Ask for confirmation before the page is left with unsaved changes.
 *
 * Returns two functions: the first leaves the page, and is null unless the user is about to leave; the second stays on
 * the page.
 * @param {boolean} unsaved
 * @returns {[(() => void) | null, () => void]}
 */
export function useGuard(unsaved) {
  const [asking, set] = useState(/** @type {{go: () => void} | null} */ (null));
  useLayoutEffect(() => {
    if (!unsaved) return;
    const leaving = (/** @type {BeforeUnloadEvent} */ event) => isLeaveConfirmed() || event.preventDefault();
    addEventListener("beforeunload", leaving);
    const done = guardLeaving((go) => {
      set({ go });
      return false;
    });
    return () => {
      removeEventListener("beforeunload", leaving);
      done();
    };
  }, [unsaved]);
  const stay = () => set(null);
  const leave = () => {
    set(null);
    asking?.go();
  };
  return [asking && leave, stay];
}

/** Save on Ctrl-S. @param {((publishes: boolean) => void) | undefined} send */
export function useSaveKey(send) {
  useLayoutEffect(() => {
    const pressed = (/** @type {KeyboardEvent} */ event) => {
      if (event.key.toLowerCase() !== "s" || !(event.ctrlKey || event.metaKey) || event.altKey) return;
      event.preventDefault();
      send?.(false);
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, [send]);
}

/** Move the focus to the first field with an error. @param {import("./editing.js").State} state */
export function useFirstError({ refused, errors }) {
  useEffect(() => {
    // By then, collapsed components have been opened.
    const frame = requestAnimationFrame(() => {
      const wrong = Object.keys(errors).map((path) => document.getElementById(idOf(path.split("."))));
      const first = wrong.filter((found) => found !== null).sort(inOrder)[0];
      first?.focus();
      first?.scrollIntoView({ block: "center" });
    });
    return () => cancelAnimationFrame(frame);
  }, [refused]);
}

/** @param {HTMLElement} a @param {HTMLElement} b */
const inOrder = (a, b) => (a.compareDocumentPosition(b) & Node.DOCUMENT_POSITION_FOLLOWING ? -1 : 1);
