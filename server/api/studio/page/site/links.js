/** The links to the pages about the whole site, with counts. Pages that the user may not see are left out. */

import { addressTo } from "../addresses.js";
import { t } from "../language.js";
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
  const off = model.isServed ? "" : model.version.as ? t`Not in this view` : t`Live site only`;
  const media = model.mayServed("upload", "find") || model.mayServed("upload", "upload");
  const mayHistory = model.mayServed("history", "read");
  const mayHooks = model.maySite("webhook", "read");
  return [
    { name: "media", label: t`Media`, note: t`Pictures and files`, off: "", may: media },
    { name: "branches", label: t`Branches`, note: t`Prepared changes`, off: "", may: model.mayBranch("find") },
    { name: "problems", label: t`Problems`, note: t`Problems in files`, off, may: model.mayServed("problems", "find") },
    { name: "changes", label: t`Changes`, note: t`Uncommitted changes`, off, may: mayHistory },
    ...peoplePages(model).slice(0, 1).map(({ name }) => {
      return { name, label: t`People`, note: t`Users, roles and tokens`, off: "", may: true };
    }),
    { name: "webhooks", label: t`Webhooks`, note: t`Requests to other systems`, off, may: mayHooks },
    { name: "events", label: t`Events`, note: t`Log of changes`, off, may: mayHooks || mayHistory },
    { name: "types", label: t`Content types`, note: t`Schemas`, off: "",
      may: model.mayServed("content-type", "write") },
    { name: "settings", label: t`Settings`, note: "site.yaml", off: "", may: model.maySite("settings", "read") },
  ].filter((page) => page.may);
}

/** Return the pages about people that the user may see. @param {import("../model.js").Model} model */
export function peoplePages(model) {
  return [
    { name: "people", label: t`Users`, may: model.mayServed("user", "find") },
    { name: "roles", label: t`Roles`, may: model.mayServed("role", "find") },
    { name: "tokens", label: t`API tokens`, may: model.maySite("token", "read") },
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
  /** @type {Record<string, number>} */
  const counts = { problems, changes };
  const people = peoplePages(model);
  const isPeople = people.some(({ name }) => name === current);
  const shown = { branch: "branches", webhook: "webhooks" }[current] ?? (isPeople ? people[0].name : current);
  return html`<h2 class="side-label">${t`Site`}</h2>
    <ul class="side-list">
      ${pages.map(({ name, label, off }) => html`<li key=${name}>
        ${off
          ? html`<span class="side-link is-off"><span class="side-text">${label}</span>
              <span class="side-count">${off}</span></span>`
          : html`<${Link} class="side-link" to=${addressTo(name)} aria-current=${shown === name ? "page" : undefined}>
              <span class="side-text">${label}</span>
              <span class="side-count">${counts[name] ? counted(counts[name]) : ""}</span>
            <//>`}
      </li>`)}
    </ul>`;
}

/**
 * Return the number of entries at a path of the API, or 0 if it is not known yet. It is requested at regular intervals.
 * @param {string} path  The path, or "" to request nothing.
 * @param {number} everyMs
 */
export function useCount(path, everyMs) {
  const load = (/** @type {AbortSignal} */ signal) => ask(path, { query: { pageSize: 1 }, signal });
  const { value } = useRequest(path && `count ${path}`, load, { everyMs, isLate: true });
  return Number(value?.meta.pagination.total ?? 0);
}
