/** The changes in an uncommitted file. They are shown as lines or, if the user may not read the file, as attributes. */

import { ask } from "../api.js";
import { t } from "../language.js";
import { labelOf } from "../text.js";
import { Failure, Loading } from "../states.js";
import { useRequest } from "../store/requests.js";
import { html } from "../vendor/preact.js";

const KINDS = { "+": "is-added", "-": "is-removed", "@": "is-place" };

/** @param {{path: string, date: string | null}} props */
export function Difference({ path, date }) {
  const { value, error, retry } = useRequest(`difference ${path} ${date}`, (signal) => {
    return ask("history/uncommitted/diff", { query: { path }, signal });
  });
  if (error) return html`<${Failure} error=${error} again=${retry} />`;
  if (!value) return html`<${Loading} />`;
  const { data } = value;
  const lines = data.lines ?? linesOf(data.attributes ?? {});
  if (!lines.length) return html`<p class="site-note">${t`No visible differences.`}</p>`;
  return html`<pre class="diff" tabindex="0" aria-label=${t`Changes in ${path}`}>${lines.map(
    (/** @type {string} */ line, /** @type {number} */ i) => html`<span key=${i}
      class=${`diff-line ${KINDS[/** @type {"+"} */ (line[0])] ?? ""}`}>${line}${"\n"}</span>`,
  )}</pre>`;
}

/** Return the changed values of attributes as lines. @param {Record<string, any>} attributes */
function linesOf(attributes) {
  return Object.entries(attributes).flatMap(([name, { from, to, lines }]) => [
    `@@ ${labelOf(name)} @@`,
    ...(lines ?? [...sideOf("-", from), ...sideOf("+", to)]),
  ]);
}

/** @param {string} sign @param {any} value */
function sideOf(sign, value) {
  if (value === null || value === undefined) return [];
  const text = typeof value === "string" ? value : JSON.stringify(value, null, 2);
  return text.split("\n").map((line) => sign + line);
}
