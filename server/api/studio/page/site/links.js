/** The links to the pages about the whole site, with counts. Pages that the user may not see are left out. */

import { addressTo } from "../addresses.js";
import { Link } from "../router.js";
import { counted } from "../text.js";
import { ask } from "../api.js";
import { useRequest } from "../store/requests.js";
import { html } from "../vendor/preact.js";

const EVERY_MS = 20_000;
const SHOWN_MS = 3_000; // of the page that is shown, as often as that itself

/** Return the pages that the user may see. @param {import("../model.js").Model} model */
export function sitePages(model) {
  return [
    { name: "problems", label: "Problems", note: "Problems in files", may: model.allows("problems", "find") },
    { name: "changes", label: "Changes", note: "Uncommitted changes", may: model.allows("history", "read") },
  ].filter((page) => page.may);
}

/** @param {{model: import("../model.js").Model, current: string}} props */
export function SiteLinks({ model, current }) {
  const pages = sitePages(model);
  const shows = (/** @type {string} */ name) => pages.some((page) => page.name === name);
  const everyMs = (/** @type {string} */ name) => (name === current ? SHOWN_MS : EVERY_MS);
  const problems = useCount(shows("problems") ? "problems" : "", everyMs("problems"));
  const changes = useCount(shows("changes") ? "history/uncommitted" : "", everyMs("changes"));
  if (!pages.length) return null;
  const counts = { problems, changes };
  return html`<h2 class="side-label">Site</h2>
    <ul class="side-list">
      ${pages.map(({ name, label }) => html`<li key=${name}>
        <${Link} class="side-link" to=${addressTo(name)} aria-current=${current === name ? "page" : undefined}>
          <span class="side-text">${label}</span>
          <span class="side-count">${counts[/** @type {"problems" | "changes"} */ (name)]}</span>
        <//>
      </li>`)}
    </ul>`;
}

/**
 * Return the number of entries at a path of the API, or "" if there are none. It is requested at regular intervals.
 * @param {string} path  The path, or "" to request nothing.
 * @param {number} everyMs
 */
function useCount(path, everyMs) {
  const load = (/** @type {AbortSignal} */ signal) => ask(path, { query: { pageSize: 1 }, signal });
  const { value } = useRequest(path && `count ${path}`, load, { everyMs });
  const total = value?.meta.pagination.total;
  return total ? counted(total) : "";
}
