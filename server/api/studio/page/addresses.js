/**
 * The table of URLs: the name of each page, and its path in the studio.
 *
 * A path segment that begins with a colon is a variable. All links to pages are made with `addressTo`, so no link can
 * lead to a page that does not exist. pages.js has the component for each page.
 */

import { addressOf } from "./router.js";

/** @type {Record<string, string>} */
const PATHS = {
  home: "",
  problems: "site/-/problems",
  changes: "site/-/changes",
  list: ":type",
  create: ":type/-/new",
  deleted: ":type/-/deleted",
  document: ":type/:id",
};

/** @param {string} name */
const partsOf = (name) => PATHS[name].split("/").filter(Boolean);

/**
 * Return the name of the page at a path and the variables in the path, or null if there is no such page.
 * @param {string[]} parts
 * @returns {{name: string, values: Record<string, string>} | null}
 */
export function placeAt(parts) {
  for (const name of Object.keys(PATHS)) {
    const wanted = partsOf(name);
    if (wanted.length !== parts.length) continue;
    if (!wanted.every((part, i) => part[0] === ":" || part === parts[i])) continue;
    const values = wanted.flatMap((part, i) => (part[0] === ":" ? [[part.slice(1), parts[i]]] : []));
    return { name, values: Object.fromEntries(values) };
  }
  return null;
}

/**
 * Return the URL of a page, or "" if there is no such page.
 * @param {string} name
 * @param {Record<string, string>} [values]
 * @param {Record<string, string> | URLSearchParams} [params]
 */
export function addressTo(name, values = {}, params = {}) {
  if (!(name in PATHS)) return "";
  return addressOf(partsOf(name).map((part) => (part[0] === ":" ? values[part.slice(1)] : part)), params);
}
