/** Addresses: which page is shown, and the parameters that it keeps in its address. */

import { html, useEffect, useState } from "./vendor/preact.js";

const BASE = new URL("../../", import.meta.url).pathname; // such as /studio/

/**
 * @typedef {object} Place
 * @property {string[]} parts  The parts of the path behind /studio, decoded: ["article", "some-id"].
 * @property {URLSearchParams} params
 */

/** @returns {Place} */
export function currentPlace() {
  const path = location.pathname.slice(BASE.length);
  return { parts: path.split("/").filter(Boolean).map(decoded), params: new URLSearchParams(location.search) };
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
 * The address of a place.
 * @param {string[]} parts
 * @param {Record<string, string> | URLSearchParams} [params]
 */
export function addressOf(parts, params) {
  const path = parts.map(encodeURIComponent).join("/");
  const query = new URLSearchParams(params).toString();
  return (path ? BASE + path : BASE.slice(0, -1)) + (query ? `?${query}` : "");
}

/**
 * Go to an address of the studio. `replace` where the browser's Back is not to lead to the one before, `unguarded`
 * where nobody is to be asked, see `guardLeaving`.
 * @param {string} address
 * @param {{replace?: boolean, unguarded?: boolean}} [options]
 */
export function navigate(address, { replace = false, unguarded = false } = {}) {
  if (!unguarded && !mayLeave()) return;
  history[replace ? "replaceState" : "pushState"](null, "", address);
  shown = location.href;
  dispatchEvent(new PopStateEvent("popstate", { state: GONE }));
}

const GONE = {}; // the state of an event that follows on a `navigate`
/** @type {Set<() => boolean>} */
const guards = new Set();
let shown = location.href;
addEventListener("popstate", (event) => {
  if (event.state !== GONE && shown !== location.href && !mayLeave()) {
    event.stopImmediatePropagation(); // before any page sees it, since this listener is the first
    history.pushState(null, "", shown);
  }
  shown = location.href;
});

/**
 * Have a function asked before another page is shown: it says whether that may be. Returns what undoes this.
 * @param {() => boolean} guard
 */
export function guardLeaving(guard) {
  guards.add(guard);
  return () => {
    guards.delete(guard);
  };
}

const mayLeave = () => [...guards].every((guard) => guard());

/** The current place; whoever uses it is rendered again when that changes. */
export function usePlace() {
  const [place, set] = useState(currentPlace);
  useEffect(() => {
    const moved = () => set(currentPlace());
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
