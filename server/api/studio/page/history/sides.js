/** Displays the two sides of a difference, with marks on removed and added text that screen readers announce. */

import { t } from "../language.js";
import { html } from "../vendor/preact.js";

const AROUND = 2; // lines that are shown beside what differs
const FEWEST = 4; // lines that are worth to be left out

/** @typedef {import("./words.js").Part} Part */

/** @param {{row: import("./changes.js").Row, names: [string, string]}} props */
export function Sides({ row: { path, left, right, kind }, names }) {
  return html`<div class="change">
    ${path.length > 0 && html`<p class="change-path">${path.join(" › ")}</p>`}
    <div class="change-sides">
      ${[left, right].map((parts, index) => html`<div class="change-side" key=${index}>
        <span class="unseen">${names[index]}:</span>
        ${kind === "items"
          ? html`<${Items} parts=${parts} />`
          : html`<${Text} parts=${parts} code=${kind === "code"} />`}
      </div>`)}
    </div>
  </div>`;
}

const NOTHING = html`<em class="change-nothing">${t`nothing`}</em>`;

/** @param {{parts: Part[]}} props */
function Items({ parts }) {
  if (!parts.length) return NOTHING;
  return html`<ul class="change-items">${parts.map((part, i) => html`<li key=${i}>${marked(part)}</li>`)}</ul>`;
}

/** @param {{parts: Part[], code: boolean}} props */
export function Text({ parts, code }) {
  if (!parts.some(({ text }) => text)) return NOTHING;
  return html`<div class=${`change-text ${code ? "is-code" : ""}`}>
    ${parts.map((part, i) => (part.kind === "same" ? folded(part.text, i > 0, i < parts.length - 1) : marked(part)))}
  </div>`;
}

/** @param {Part} part */
function marked({ kind, text }) {
  if (!text) return "";
  if (kind === "removed") return html`<del>${text}</del>`;
  return kind === "added" ? html`<ins>${text}</ins>` : text;
}

/**
 * Shorten an unchanged text: leave out lines that are far from a change.
 * @param {string} text
 * @param {boolean} after  Whether a change precedes the text.
 * @param {boolean} before  Whether a change follows the text.
 */
function folded(text, after, before) {
  const lines = text.split("\n");
  const first = after ? AROUND : 0;
  const last = before ? AROUND : 0;
  const between = lines.length - first - last;
  if (between < FEWEST || (!after && !before)) return text;
  const shown = [lines.slice(0, first).join("\n"), lines.slice(lines.length - last).join("\n")];
  return html`${shown[0]}<span class="change-fold">${t`${between} unchanged lines`}</span>${last ? shown[1] : ""}`;
}
