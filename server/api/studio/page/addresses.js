/**
 * The table of URLs: the name of each page, and its path in the studio.
 *
 * A path segment that begins with a colon is a variable; with an asterisk at its end, it stands for all remaining
 * segments, because names of branches can contain slashes. All links to pages are made with `addressTo`, so no link can
 * lead to a page that does not exist. pages.js has the component for each page.
 */

import { addressOf } from "./router.js";

/** @type {Record<string, string>} */
const PATHS = {
  home: "",
  problems: "site/-/problems",
  changes: "site/-/changes",
  media: "site/-/media",
  branches: "site/-/branches",
  branch: "site/-/branches/:name*",
  people: "site/-/people",
  roles: "site/-/roles",
  tokens: "site/-/tokens",
  sessions: "site/-/sessions",
  settings: "site/-/settings",
  webhooks: "site/-/webhooks",
  webhook: "site/-/webhooks/:name",
  events: "site/-/events",
  types: "site/-/types",
  invitation: "site/-/invitation",
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
    const hasRest = wanted.at(-1)?.endsWith("*") ?? false;
    if (hasRest ? wanted.length > parts.length : wanted.length !== parts.length) continue;
    if (!wanted.every((part, i) => part[0] === ":" || part === parts[i])) continue;
    const values = wanted.flatMap((part, i) => {
      if (part[0] !== ":") return [];
      return [part.endsWith("*") ? [part.slice(1, -1), parts.slice(i).join("/")] : [part.slice(1), parts[i]]];
    });
    return { name, values: Object.fromEntries(values) };
  }
  return null;
}

/**
 * Return the URL of a page, or "" if there is no such page.
 * @param {string} name
 * @param {Record<string, string>} [values]
 * @param {Record<string, string> | URLSearchParams} [params]
 * @param {import("./router.js").Version} [version]  The version of the site; by default, the one that is shown.
 */
export function addressTo(name, values = {}, params = {}, version = undefined) {
  if (!(name in PATHS)) return "";
  const parts = partsOf(name).flatMap((part) => {
    if (part[0] !== ":") return [part];
    return part.endsWith("*") ? values[part.slice(1, -1)].split("/") : [values[part.slice(1)]];
  });
  return addressOf(parts, params, version);
}
