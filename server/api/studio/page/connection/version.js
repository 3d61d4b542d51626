/** Detects that the server was updated after the page was loaded. Reloads the page if no unsaved text would be lost. */

import { FILES, STUDIO } from "../base.js";
import { hasUnsavedWork } from "../router.js";
import { useEffect, useState } from "../vendor/preact.js";
import { whenBack } from "./connection.js";

const OWN_FILES = FILES.pathname.slice(STUDIO.pathname.length); // such as -/0123abcd/
const RELOADED_AT = "bifolio-reloaded-at";
const RELOAD_PAUSE_MS = 60_000; // between two reloads that nobody asked for: a reload that does not help ends there

let updated = false;
/** @type {Set<() => void>} */
const listeners = new Set();
/** @type {Set<HTMLInputElement>} */
const typedInto = new Set();

/**
 * Request the current version of the page's files from the server. Resolves to whether it differs from this page's
 * version.
 */
export async function checkVersion() {
  const page = await fetch(STUDIO, { cache: "no-store" }).then((answer) => (answer.ok ? answer.text() : ""), () => "");
  if (!page.includes("/-/") || page.includes(OWN_FILES) || updated) return updated;
  updated = true;
  for (const listener of [...listeners]) listener();
  return true;
}

/**
 * Reload the page, unless unsaved text would be lost or the page has just been reloaded without success. Returns
 * whether it reloads.
 */
export function reloadSafely() {
  if (hasUnsavedWork() || [...typedInto].some(holdsText) || !mayReloadAgain()) return false;
  location.reload();
  return true;
}

/**
 * Return whether a field that belongs to no form, such as one in a dialog, contains text.
 * @param {HTMLInputElement} field
 */
function holdsText(field) {
  const isOfDocument = field.closest("form.fields") && !field.closest("dialog");
  return field.isConnected && !isOfDocument && Boolean(field.value ?? field.textContent);
}

function mayReloadAgain() {
  try {
    if (Date.now() - Number(sessionStorage.getItem(RELOADED_AT)) < RELOAD_PAUSE_MS) return false;
    sessionStorage.setItem(RELOADED_AT, String(Date.now()));
    return true;
  } catch {
    return false; // The browser keeps nothing, and would reload for ever.
  }
}

/** Return whether the page has detected that the server was updated after the page was loaded. */
export function useUpdated() {
  const [now, set] = useState(updated);
  useEffect(() => {
    const changed = () => set(updated);
    listeners.add(changed);
    changed();
    return () => {
      listeners.delete(changed);
    };
  }, []);
  return now;
}

whenBack(async () => {
  if (await checkVersion()) reloadSafely();
});
addEventListener("input", ({ target }) => {
  for (const field of typedInto) if (!field.isConnected) typedInto.delete(field);
  typedInto.add(/** @type {HTMLInputElement} */ (target));
}, true);
addEventListener("popstate", () => updated && reloadSafely());
