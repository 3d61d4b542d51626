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
 * Go to an address of the studio. `replace` where the browser's Back is not to lead to the one before.
 * @param {string} address
 * @param {{replace?: boolean}} [options]
 */
export function navigate(address, { replace = false } = {}) {
  history[replace ? "replaceState" : "pushState"](null, "", address);
  dispatchEvent(new PopStateEvent("popstate"));
}

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
