/** Displays lines of files: a whole text with line numbers, or the difference between two texts. */

import { t } from "../language.js";
import { html } from "../vendor/preact.js";

const HUNK = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@/;
const WORDS = { create: t`New file`, update: t`Changed`, delete: t`Deleted` };

/**
 * @typedef {object} Line
 * @property {"added" | "removed" | "same" | "gap" | "note"} kind
 * @property {number} [number]  The line number: in the old text if the line is removed, otherwise in the new text.
 * @property {string} text
 */

/**
 * Return the lines of a unified diff with their numbers. The headers between parts are left out.
 * @param {string[]} lines
 * @returns {Line[]}
 */
export function linesOf(lines) {
  let [before, after] = [1, 1];
  return lines.map((line, index) => {
    const hunk = HUNK.exec(line);
    if (hunk) {
      [before, after] = [Number(hunk[1]), Number(hunk[2])];
      return { kind: "gap", text: index ? "⋯" : "" };
    }
    const text = line.slice(1).replace(/\r$/, "");
    if (line.startsWith("-")) return { kind: "removed", number: before++, text };
    if (line.startsWith("+")) return { kind: "added", number: after++, text };
    if (line.startsWith("\\")) return { kind: "note", text: t`No newline at end of file` };
    before++;
    return { kind: "same", number: after++, text };
  });
}

const MARKS = { added: "+", removed: "−", same: "", gap: "", note: "" };

/** @param {{line: Line}} props */
function DiffLine({ line: { kind, number, text } }) {
  const shown = kind === "added" ? html`<ins>${text}</ins>` : kind === "removed" ? html`<del>${text}</del>` : text;
  return html`<span class=${`code-line is-${kind}`}>
    <span class="code-number" aria-hidden="true">${number ?? ""}</span>
    <span class="code-mark" aria-hidden="true">${MARKS[kind]}</span>
    <span class="code-text">${shown}${"\n"}</span>
  </span>`;
}

/**
 * The changes to several files.
 * @param {{files: import("./changes.js").FileChange[]}} props
 */
export function Differences({ files }) {
  return html`${files.map(({ path, action, lines }) => html`<section class="difference" key=${path}>
    <h4 class="difference-head"><span class="difference-path">${path}</span>
      <span class=${`difference-action is-${action}`}>${WORDS[action]}</span></h4>
    ${lines
      ? html`<pre class="code" tabindex="0" aria-label=${`${WORDS[action]}: ${path}`}>${linesOf(lines)
        .filter(({ kind, text }) => kind !== "gap" || text)
        .map((line, index) => html`<${DiffLine} key=${index} line=${line} />`)}</pre>`
      : html`<p class="hint">${t`The changed lines can't be shown.`}</p>`}
  </section>`)}`;
}

/**
 * A text with line numbers.
 * @param {{text: string, label: string, wrong?: number | null}} props  `wrong` is the number of a line with an error.
 */
export function Numbered({ text, label, wrong = null }) {
  const lines = text.replace(/\r?\n$/, "").split(/\r?\n/);
  return html`<pre class="code" tabindex="0" aria-label=${label}>${lines.map((line, index) => html`<span
    class=${`code-line ${index + 1 === wrong ? "is-wrong" : ""}`} key=${index}>
    <span class="code-number" aria-hidden="true">${index + 1}</span>
    <span class="code-text">${line}${"\n"}</span>
  </span>`)}</pre>`;
}
