/** Addresses: which page is shown, of which version of the site, and the parameters that it keeps in its address. */

import { STUDIO } from "./base.js";
import { html, useEffect, useState } from "./vendor/preact.js";

const BASE = STUDIO.pathname;

/**
 * @typedef {object} Place
 * @property {string[]} parts  The parts of the path behind /studio, decoded: ["article", "some-id"].
 * @property {URLSearchParams} params
 * @property {boolean} stays  Whether the page that was shown before goes on here.
 */

/**
 * The version of the site that is shown; both are "" for the one that is served.
 * @typedef {object} Version
 * @property {string} branch  A branch that is not served: it is read and written.
 * @property {string} at  A past commit, by its id, a tag or a time: it is only read.
 */

/** The version that the address names. Every address of the studio keeps it; api.js sends it. @returns {Version} */
export function currentVersion() {
  const params = new URLSearchParams(location.search);
  const at = params.get("at") ?? "";
  return { at, branch: at ? "" : (params.get("branch") ?? "") };
}

/** @returns {Place} */
export function currentPlace(stays = false) {
  const path = location.pathname.slice(BASE.length);
  const parts = path.split("/").filter(Boolean).map(decoded);
  return { parts, params: new URLSearchParams(location.search), stays };
}

/** @param {string} part */
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/**
 * The address of a place, in the version that is shown.
 * @param {string[]} parts
 * @param {Record<string, string> | URLSearchParams} [params]
 */
export function addressOf(parts, params) {
  const path = parts.map(encodeURIComponent).join("/");
  const query = new URLSearchParams(params);
  for (const [name, value] of Object.entries(currentVersion())) if (value) query.set(name, value);
  return (path ? BASE + path : BASE.slice(0, -1)) + (query.size ? `?${query}` : "");
}

/**
 * Go to an address of the studio. `replace` where the browser's Back is not to lead to the one before, `unguarded`
 * where nobody is to be asked, see `guardLeaving`, `stays` where the page that is shown goes on at the address.
 * @param {string} address
 * @param {{replace?: boolean, unguarded?: boolean, stays?: boolean}} [options]
 */
export function navigate(address, { replace = false, unguarded = false, stays = false } = {}) {
  if (!unguarded && !mayLeave(() => navigate(address, { replace, unguarded: true, stays }))) return;
  history[replace ? "replaceState" : "pushState"](null, "", address);
  shown = location.href;
  dispatchEvent(new PopStateEvent("popstate", { state: stays ? STAYED : GONE }));
}

const [GONE, STAYED] = [{}, {}]; // the states of events that follow on a `navigate`
/** @typedef {(go: () => void) => boolean} Guard  Whether a page may be left; if not, `go` leaves it later. */
/** @type {Set<Guard>} */
const guards = new Set();
let shown = location.href;
const loadedVersion = JSON.stringify(currentVersion());
addEventListener("popstate", (event) => {
  const target = location.href;
  if (JSON.stringify(currentVersion()) !== loadedVersion) return location.reload();
  const isOurs = event.state === GONE || event.state === STAYED;
  if (!isOurs && shown !== target && !mayLeave(() => navigate(target, { unguarded: true }))) {
    event.stopImmediatePropagation(); // before any page sees it, since this listener is the first
    history.pushState(null, "", shown);
  }
  shown = location.href;
});

/**
 * Have a function asked before another page is shown: it says whether that may be. Returns what undoes this.
 * @param {Guard} guard
 */
export function guardLeaving(guard) {
  guards.add(guard);
  return () => {
    guards.delete(guard);
  };
}

/** Whether the page that is shown holds unsaved work. */
export const hasUnsavedWork = () => guards.size > 0;

/** @param {() => void} go */
const mayLeave = (go) => [...guards].every((guard) => guard(go));

/** The current place; whoever uses it is rendered again when that changes. */
export function usePlace() {
  const [place, set] = useState(() => currentPlace());
  useEffect(() => {
    const moved = (/** @type {PopStateEvent} */ event) => set(currentPlace(event.state === STAYED));
    addEventListener("popstate", moved);
    return () => removeEventListener("popstate", moved);
  }, []);
  return place;
}

/**
 * A link within the studio. New tabs and windows work as with any link.
 * @param {{to: string, children?: any, [name: string]: any}} props
 */
export function Link({ to, children, onClick, ...rest }) {
  /** @param {MouseEvent} event */
  const follow = (event) => {
    onClick?.(event);
    if (event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    navigate(to);
  };
  return html`<a href=${to} onClick=${follow} ...${rest}>${children}</a>`;
}
