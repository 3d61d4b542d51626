/** The links to the pages about the whole site, with counts. Pages that the user may not see are left out. */

import { addressTo } from "../addresses.js";
import { Link } from "../router.js";
import { counted } from "../text.js";
import { ask } from "../api.js";
import { useRequest } from "../store/requests.js";
import { html } from "../vendor/preact.js";

const EVERY_MS = 20_000;
const SHOWN_MS = 3_000; // of the page that is shown, as often as that itself

/**
 * @typedef {object} SitePage
 * @property {string} name
 * @property {string} label
 * @property {string} note
 * @property {string} off  Why the page is not available in the version that is shown, or "" if it is.
 */

/** Return the pages that the user may see. @param {import("../model.js").Model} model @returns {SitePage[]} */
export function sitePages(model) {
  const off = model.isServed ? "" : model.version.as ? "Not in this view" : "Live site only";
  const media = model.mayServed("upload", "find") || model.mayServed("upload", "upload");
  const mayHistory = model.mayServed("history", "read");
  const mayHooks = model.maySite("webhook", "read");
  return [
    { name: "media", label: "Media", note: "Pictures and files", off: "", may: media },
    { name: "branches", label: "Branches", note: "Prepared changes", off: "", may: model.mayBranch("find") },
    { name: "problems", label: "Problems", note: "Problems in files", off, may: model.mayServed("problems", "find") },
    { name: "changes", label: "Changes", note: "Uncommitted changes", off, may: mayHistory },
    ...peoplePages(model).slice(0, 1).map(({ name }) => {
      return { name, label: "People", note: "Users, roles and tokens", off: "", may: true };
    }),
    { name: "webhooks", label: "Webhooks", note: "Requests to other systems", off, may: mayHooks },
    { name: "events", label: "Events", note: "Log of changes", off, may: mayHooks || mayHistory },
    { name: "types", label: "Content types", note: "Schemas", off: "", may: model.mayServed("content-type", "write") },
    { name: "settings", label: "Settings", note: "site.yaml", off: "", may: model.maySite("settings", "read") },
  ].filter((page) => page.may);
}

/** Return the pages about people that the user may see. @param {import("../model.js").Model} model */
export function peoplePages(model) {
  return [
    { name: "people", label: "Users", may: model.mayServed("user", "find") },
    { name: "roles", label: "Roles", may: model.mayServed("role", "find") },
    { name: "tokens", label: "API tokens", may: model.maySite("token", "read") },
  ].filter((page) => page.may);
}

/** @param {{model: import("../model.js").Model, current: string}} props */
export function SiteLinks({ model, current }) {
  const pages = sitePages(model);
  const shows = (/** @type {string} */ name) => pages.some((page) => page.name === name && !page.off);
  const everyMs = (/** @type {string} */ name) => (name === current ? SHOWN_MS : EVERY_MS);
  const problems = useCount(shows("problems") ? "problems" : "", everyMs("problems"));
  const changes = useCount(shows("changes") ? "history/uncommitted" : "", everyMs("changes"));
  if (!pages.length) return null;
  /** @type {Record<string, string>} */
  const counts = { problems, changes };
  const people = peoplePages(model);
  const isPeople = people.some(({ name }) => name === current);
  const shown = { branch: "branches", webhook: "webhooks" }[current] ?? (isPeople ? people[0].name : current);
  return html`<h2 class="side-label">Site</h2>
    <ul class="side-list">
      ${pages.map(({ name, label, off }) => html`<li key=${name}>
        ${off
          ? html`<span class="side-link is-off"><span class="side-text">${label}</span>
              <span class="side-count">${off}</span></span>`
          : html`<${Link} class="side-link" to=${addressTo(name)} aria-current=${shown === name ? "page" : undefined}>
              <span class="side-text">${label}</span>
              <span class="side-count">${counts[name]}</span>
            <//>`}
      </li>`)}
    </ul>`;
}

/**
 * Return the number of entries at a path of the API, or "" if there are none. It is requested at regular intervals.
 * @param {string} path  The path, or "" to request nothing.
 * @param {number} everyMs
 */
export function useCount(path, everyMs) {
  const load = (/** @type {AbortSignal} */ signal) => ask(path, { query: { pageSize: 1 }, signal });
  const { value } = useRequest(path && `count ${path}`, load, { everyMs });
  const total = value?.meta.pagination.total;
  return total ? counted(total) : "";
}
