/** What the page of any form does: asks before it is left, saves on Ctrl-S, shows the first field that is wrong. */

import { guardLeaving } from "../router.js";
import { useEffect, useLayoutEffect, useState } from "../vendor/preact.js";
import { idOf } from "./field.js";

/**
 * Ask before what was typed is left: what leaves the page then, null while nobody is about to, and what stays on it.
 * @param {boolean} unsaved
 * @returns {[(() => void) | null, () => void]}
 */
export function useGuard(unsaved) {
  const [asking, set] = useState(/** @type {{go: () => void} | null} */ (null));
  useLayoutEffect(() => {
    if (!unsaved) return;
    const leaving = (/** @type {BeforeUnloadEvent} */ event) => event.preventDefault();
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

/** Ctrl-S saves. @param {((publishes: boolean) => void) | undefined} send */
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

/** Go to the first field that is not right. @param {import("./editing.js").State} state */
export function useFirstError({ refused, errors }) {
  useEffect(() => {
    // What is collapsed opens first.
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
