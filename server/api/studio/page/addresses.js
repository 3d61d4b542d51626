/**
 * The table of addresses: what each kind of page is called, and where it is.
 *
 * A part that begins with a colon stands for any value. Whatever leads to a page asks `addressTo`, so that nothing
 * leads to one that there is not. pages.js says what is shown there.
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
 * The page that is at a path, by its name, and the values in the path; null where there is none.
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
 * The address of a page; "" where there is no such page.
 * @param {string} name
 * @param {Record<string, string>} [values]
 * @param {Record<string, string> | URLSearchParams} [params]
 */
export function addressTo(name, values = {}, params = {}) {
  if (!(name in PATHS)) return "";
  return addressOf(partsOf(name).map((part) => (part[0] === ":" ? values[part.slice(1)] : part)), params);
}
