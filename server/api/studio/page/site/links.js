/** The links to the pages about the site as a whole, with their counts; what one may not see is not there. */

import { addressTo } from "../addresses.js";
import { Link } from "../router.js";
import { counted } from "../text.js";
import { html } from "../vendor/preact.js";
import { useWatched } from "./watching.js";

const EVERY_MS = 20_000;
const SHOWN_MS = 3_000; // of the page that is shown, as often as that itself
const ONE = { pageSize: 1 };

/** The pages that whoever is here may see. @param {import("../model.js").Model} model */
export function sitePages(model) {
  return [
    { name: "problems", label: "Problems", note: "What is wrong in files", may: model.allows("problems", "find") },
    { name: "changes", label: "Changes", note: "What is not committed", may: model.allows("history", "read") },
  ].filter((page) => page.may);
}

/** @param {{model: import("../model.js").Model, current: string}} props */
export function SiteLinks({ model, current }) {
  const pages = sitePages(model);
  const shows = (/** @type {string} */ name) => pages.some((page) => page.name === name);
  const every = (/** @type {string} */ name) => (name === current ? SHOWN_MS : EVERY_MS);
  const [problems] = useWatched(shows("problems") ? "problems" : "", ONE, every("problems"));
  const [changes] = useWatched(shows("changes") ? "history/uncommitted" : "", ONE, every("changes"));
  if (!pages.length) return null;
  const counts = { problems: problems.answer, changes: changes.answer };
  return html`<h2 class="side-label">Site</h2>
    <ul class="side-list">
      ${pages.map(({ name, label }) => html`<li key=${name}>
        <${Link} class="side-link" to=${addressTo(name)} aria-current=${current === name ? "page" : undefined}>
          <span class="side-text">${label}</span>
          <span class="side-count">${countOf(counts[/** @type {"problems" | "changes"} */ (name)])}</span>
        <//>
      </li>`)}
    </ul>`;
}

/** @param {import("../api.js").Answer | undefined} answer */
function countOf(answer) {
  const total = answer?.meta.pagination.total;
  return total ? counted(total) : "";
}
