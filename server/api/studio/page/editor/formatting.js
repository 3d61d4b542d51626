/** The functions of the Markdown toolbar. Each edit receives the text and the selection, and returns changes. */

import { t } from "../language.js";

/** @typedef {import("./source-input.js").Edit} Edit */

const ADDRESS = /^(https?:\/\/|mailto:|\/)\S+$/;
const FENCE = "```";
const HEADINGS = ["", "## ", "### "]; // what a press of the button makes of a line, one after the other

/**
 * Put a mark around the selection or the word at the cursor. If the mark is already there, remove it.
 * @param {string} mark  The mark, such as "**".
 * @param {string[]} [known]  Other marks with the same meaning.
 * @returns {Edit}
 */
const around = (mark, known = []) => (text, start, end) => {
  const [from, to] = start === end ? wordAt(text, start) : trimmed(text, start, end);
  const found = [mark, ...known].find((one) => isAround(one, text, from, to));
  const size = mark.length;
  if (found) {
    const changes = [{ from: from - size, to: from, text: "" }, { from: to, to: to + size, text: "" }];
    return { changes, from: Math.max(start, from) - size, to: Math.min(end, to) - size };
  }
  const changes = [{ from, to: from, text: mark }, { from: to, to, text: mark }];
  return { changes, from: Math.max(start, from) + size, to: Math.min(end, to) + size };
};

/**
 * Return whether a mark surrounds a part of a text. "**" does not count as "*".
 * @param {string} mark
 * @param {string} text
 * @param {number} from
 * @param {number} to
 */
function isAround(mark, text, from, to) {
  let before = 0;
  while (text[from - 1 - before] === mark[0]) before++;
  let after = 0;
  while (text[to + after] === mark[0]) after++;
  const count = Math.min(before, after);
  return mark.length === 1 ? count % 2 === 1 : count >= mark.length;
}

/** @param {string} text @param {number} at @returns {[number, number]} */
function wordAt(text, at) {
  const before = /[\p{L}\p{N}'’-]*$/u.exec(text.slice(0, at))?.[0].length ?? 0;
  const after = /^[\p{L}\p{N}'’-]*/u.exec(text.slice(at))?.[0].length ?? 0;
  return before && after ? [at - before, at + after] : [at, at];
}

/** Return the selection without spaces at its ends, because marks are only valid next to words. */
const trimmed = (/** @type {string} */ text, /** @type {number} */ from, /** @type {number} */ to) => {
  const selected = text.slice(from, to);
  const inner = selected.trim();
  const start = from + selected.indexOf(inner);
  return /** @type {[number, number]} */ ([start, start + inner.length]);
};

/**
 * Return an edit that changes the start of each selected line.
 * @param {(line: string, all: string[]) => [string, string]} swap  Returns a line's current prefix and its new prefix.
 * @returns {Edit}
 */
const eachLine = (swap) => (text, start, end) => {
  const first = text.lastIndexOf("\n", start - 1) + 1;
  const after = text.indexOf("\n", Math.max(start, end - 1));
  const lines = text.slice(first, after < 0 ? text.length : after).split("\n");
  let place = first;
  let [from, to] = [start, end];
  const changes = lines.flatMap((line) => {
    const at = place;
    place += line.length + 1;
    const [before, begins] = swap(line, lines);
    if (before === begins || (!line.trim() && lines.length > 1)) return [];
    const more = begins.length - before.length;
    if (start >= at) from = Math.max(at, from + more);
    to = Math.max(from, to + more);
    return [{ from: at, to: at + before.length, text: begins }];
  });
  return { changes, from, to };
};

/**
 * Return an edit that adds a prefix to the selected lines. If all of them have it, the edit removes it.
 * @param {string} begins
 * @param {RegExp} known  Matches prefixes of this kind.
 * @returns {Edit}
 */
const prefix = (begins, known) => eachLine((line, all) => {
  const off = all.every((one) => !one.trim() || known.test(one)) && all.some((one) => one.trim());
  const before = known.exec(line)?.[0] ?? "";
  return off ? [before, ""] : [before, before || begins];
});

/** @type {Edit} */
const heading = eachLine((line) => {
  const before = /^#{1,6} +/.exec(line)?.[0] ?? "";
  return [before, HEADINGS[(HEADINGS.indexOf(before) + 1) % HEADINGS.length]];
});

/** @type {Edit} */
const link = (text, start, end) => {
  const [from, to] = start === end ? wordAt(text, start) : trimmed(text, start, end);
  const label = text.slice(from, to);
  if (ADDRESS.test(label)) return { changes: [{ from, to, text: `[](${label})` }], from: from + 1, to: from + 1 };
  const address = from + label.length + 3;
  return { changes: [{ from, to, text: `[${label}](https://)` }], from: address, to: address + "https://".length };
};

/** Mark the selection as code in a line, or several lines as a code block. @type {Edit} */
const code = (text, from, to) => {
  if (!text.slice(from, to).includes("\n")) return around("`")(text, from, to);
  const before = from && text[from - 1] !== "\n" ? `\n${FENCE}\n` : `${FENCE}\n`;
  const after = `${text[to - 1] === "\n" ? "" : "\n"}${FENCE}${text[to] === "\n" ? "" : "\n"}`;
  const changes = [{ from, to: from, text: before }, { from: to, to, text: after }];
  return { changes, from: from + before.length, to: to + before.length };
};

/**
 * Return the Markdown for a picture, or for a link to another file.
 * @param {import("./picture-dialog.js").File} file
 */
export function fileText({ url, name, alternativeText, mime }) {
  const picture = mime.startsWith("image/");
  const label = (picture ? (alternativeText ?? "") : name).replace(/[[\]\\]/g, "\\$&").replace(/\s+/g, " ");
  const address = /[\s()<>]/.test(url) ? `<${url.replace(/[<>]/g, encodeURIComponent)}>` : url;
  return `${picture ? "!" : ""}[${label}](${address})`;
}

/**
 * Return an edit that replaces the selection with a text, and moves the cursor to its end.
 * @param {string} text
 * @returns {Edit}
 */
export const insertion = (text) => (_, from, to) => {
  return { changes: [{ from, to, text }], from: from + text.length, to: from + text.length };
};

/**
 * @typedef {object} Tool
 * @property {string} label
 * @property {keyof typeof import("../icons.js").PATHS} icon
 * @property {string} [key]  The key to press together with Control or Command.
 * @property {Edit} edit
 */

/** @type {Tool[]} */
export const TOOLS = [
  { label: t`Bold`, icon: "bold", key: "b", edit: around("**", ["__"]) },
  { label: t`Italic`, icon: "italic", key: "i", edit: around("*", ["_"]) },
  { label: t`Code`, icon: "code", key: "e", edit: code },
  { label: t`Link`, icon: "link", key: "Shift-k", edit: link },
  { label: t`Heading`, icon: "heading", edit: heading },
  { label: t`List`, icon: "bullets", edit: prefix("- ", /^[-*+] /) },
  { label: t`Quote`, icon: "quote", edit: prefix("> ", /^> ?/) },
];
