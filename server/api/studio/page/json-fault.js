/**
 * Finds the position of a syntax error in JSON, and what is expected there. Messages from browsers differ, or lack the
 * position.
 */

import { t } from "./language.js";

const GAP = /[ \t\n\r]*/y;
const TOKEN = new RegExp(
  [
    /[{}[\],:]/,
    /"[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[\da-fA-F]{4})[^"\\\x00-\x1f]*)*"/,
    /(?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)(?![\w.+-])/,
  ].map(({ source }) => source).join("|"),
  "y",
);
/** The things that can be expected next, and their names. */
const WANTED = {
  value: t`a value`,
  firstItem: t`a value or ]`,
  firstName: t`a name in "double quotes" or }`,
  name: t`a name in "double quotes"`,
  colon: t`a colon`,
  nextItem: t`a comma or ]`,
  nextName: t`a comma or }`,
  end: t`nothing more`,
};
/** @typedef {keyof typeof WANTED} Wanted */

/**
 * Return the first error in a JSON text, such as "line 1, column 7: expected a value". Returns "" if the text is valid.
 * @param {string} text
 */
export function faultOf(text) {
  /** @type {Wanted} */
  let wanted = "value";
  /** @type {string[]} */
  const open = [];
  for (let at = 0; ; ) {
    at += matchAt(GAP, text, at).length;
    if (at === text.length && wanted === "end") return "";
    const token = matchAt(TOKEN, text, at);
    const next = after(wanted, token, open);
    if (!next) return t`${placeOf(text, at)}: expected ${WANTED[wanted]}`;
    wanted = next;
    at += token.length;
  }
}

/** @param {RegExp} pattern @param {string} text @param {number} at */
function matchAt(pattern, text, at) {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0] ?? "";
}

/**
 * Return what is expected after a token, or null if the token is not allowed.
 * @param {Wanted} wanted
 * @param {string} token  The token, or "" at the end.
 * @param {string[]} open  The lists and objects that contain the token. It is changed.
 * @returns {Wanted | null}
 */
function after(wanted, token, open) {
  const closes = { "]": ["firstItem", "nextItem"], "}": ["firstName", "nextName"] }[token];
  if (closes) {
    if (!closes.includes(wanted)) return null;
    open.pop();
    return afterValue(open);
  }
  if (token === ",") return wanted === "nextItem" ? "value" : wanted === "nextName" ? "name" : null;
  if (token === ":") return wanted === "colon" ? "value" : null;
  if (wanted === "name" || wanted === "firstName") return token.startsWith('"') ? "colon" : null;
  if (!token || (wanted !== "value" && wanted !== "firstItem")) return null;
  if (token !== "{" && token !== "[") return afterValue(open);
  open.push(token);
  return token === "{" ? "firstName" : "firstItem";
}

/** @param {string[]} open @returns {Wanted} */
const afterValue = (open) => (!open.length ? "end" : open[open.length - 1] === "{" ? "nextName" : "nextItem");

/** @param {string} text @param {number} at */
function placeOf(text, at) {
  const lines = text.slice(0, at).split("\n");
  return t`line ${lines.length}, column ${lines[lines.length - 1].length + 1}`;
}
