/** The studio's URLs: the page that is shown, the version of the site, and the page's parameters. */

import { STUDIO } from "./base.js";
import { html, useEffect, useState } from "./vendor/preact.js";

const BASE = STUDIO.pathname;

/**
 * @typedef {object} Place
 * @property {string[]} parts  The decoded path segments after /studio: ["article", "some-id"].
 * @property {URLSearchParams} params
 * @property {boolean} stays  Whether the previous page stays open at the new URL.
 */

/**
 * The version of the site that is shown. Both are "" for the served version.
 * @typedef {object} Version
 * @property {string} branch  A branch that is not served. It can be read and written.
 * @property {string} at  A past commit, given as an id, tag or time. It is read-only.
 * @property {string} [as]  The role whose view of the site is shown. It is read-only.
 */

/** The version that the server serves. @type {Version} */
export const SERVED = { branch: "", at: "", as: "" };

/** Return the version in the URL. All URLs of the studio preserve it, and api.js sends it. @returns {Version} */
export function currentVersion() {
  const params = new URLSearchParams(location.search);
  const at = params.get("at") ?? "";
  return { at, branch: at ? "" : (params.get("branch") ?? ""), as: params.get("as") ?? "" };
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
 * Return the URL of a page.
 * @param {string[]} parts
 * @param {Record<string, string> | URLSearchParams} [params]
 * @param {Version} [version]  The version of the site; by default, the one that is shown.
 */
export function addressOf(parts, params, version = currentVersion()) {
  const path = parts.map(encodeURIComponent).join("/");
  const query = new URLSearchParams(params);
  for (const [name, value] of Object.entries(version)) {
    if (value) query.set(name, value);
    else query.delete(name);
  }
  return (path ? BASE + path : BASE.slice(0, -1)) + (query.size ? `?${query}` : "");
}

/** Return the URL of the current page in another version of the site. @param {Version} version */
export function addressHere(version) {
  const { parts, params } = currentPlace();
  return addressOf(parts, params, version);
}

/**
 * Go to a URL of the studio.
 *
 * - `replace`: the browser's Back button does not return to the current page
 * - `unguarded`: do not ask for confirmation, see `guardLeaving`
 * - `stays`: the current page stays open at the new URL
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
/**
 * @typedef {(go: () => void) => boolean} Guard  A function that returns whether the page may be left. If not, it can
 *   call `go` later to leave the page.
 */
/** @type {Set<Guard>} */
const guards = new Set();
let shown = location.href;
let isConfirmed = false; // whether the page is reloaded after the user has confirmed that it may be left
const loadedVersion = JSON.stringify(currentVersion());
addEventListener("popstate", (event) => {
  const target = location.href;
  const isOurs = event.state === GONE || event.state === STAYED;
  if (JSON.stringify(currentVersion()) !== loadedVersion) {
    isConfirmed = isOurs;
    return location.reload();
  }
  if (!isOurs && shown !== target && !mayLeave(() => navigate(target, { unguarded: true }))) {
    event.stopImmediatePropagation(); // before any page sees it, since this listener is the first
    history.pushState(null, "", shown);
  }
  shown = location.href;
});

/**
 * Register a function that decides whether the current page may be left. Returns a function that cancels this.
 * @param {Guard} guard
 */
export function guardLeaving(guard) {
  guards.add(guard);
  return () => {
    guards.delete(guard);
  };
}

/** Return whether the user has already confirmed that the page is left, so that the browser need not ask again. */
export const isLeaveConfirmed = () => isConfirmed;

/** Return whether the current page has unsaved changes. */
export const hasUnsavedWork = () => guards.size > 0;

/** @param {() => void} go */
const mayLeave = (go) => [...guards].every((guard) => guard(go));

/** Return the current place. The component is rendered again when it changes. */
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
 * A link to another page of the studio. It can be opened in a new tab or window like any link.
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
