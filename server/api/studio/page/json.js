/** JSON with exact numbers. Plain JavaScript numbers would change 12345678901234567890 and 1.0. */

/** A number that JavaScript would write differently from the way in which it was written. */
export class Exact {
  /** @param {string} text  The number as written in JSON. */
  constructor(text) {
    this.text = text;
  }

  toString() {
    return this.text;
  }
}

const MARK = `number-${Math.random()}:`; // which no text begins with that was written before
const MARKED = new RegExp(`"${MARK}([^"]+)"`, "g");
const TOKEN = /\\.|"|-?\d[\d.eE+-]*/g; // an escape, the beginning or end of a text, a number

/**
 * Parse JSON. Numbers that JavaScript would write differently become `Exact`. Throws SyntaxError.
 * @param {string} text
 * @returns {any}
 */
export function parseJson(text) {
  const plain = JSON.parse(text);
  let inText = false;
  const marked = text.replace(TOKEN, (token) => {
    if (token === '"') inText = !inText;
    const stays = inText || token === '"' || String(Number(token)) === token;
    return stays ? token : `"${MARK}${token}"`;
  });
  return marked === text ? plain : JSON.parse(marked, revive);
}

/** @param {string} _ @param {any} value */
function revive(_, value) {
  return typeof value === "string" && value.startsWith(MARK) ? new Exact(value.slice(MARK.length)) : value;
}

/**
 * Write JSON. `Exact` numbers are written as they were read.
 * @param {any} value
 * @param {number} [indent]  The number of spaces.
 * @returns {string}
 */
export function writeJson(value, indent) {
  const marked = JSON.stringify(value, (_, one) => (one instanceof Exact ? MARK + one.text : one), indent);
  return marked.replace(MARKED, "$1");
}

/**
 * Return a value in which JavaScript numbers replace `Exact`, for calculations.
 * @param {any} value
 * @returns {any}
 */
export function withNumbers(value) {
  if (value instanceof Exact) return Number(value.text);
  if (Array.isArray(value)) return value.map(withNumbers);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, withNumbers(one)]));
}
