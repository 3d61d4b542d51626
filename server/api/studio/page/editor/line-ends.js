/** Line endings in editors: an editor uses a single character for each line ending, but the text keeps its own. */

/**
 * @typedef {object} Change  A change to a text. The positions refer to the text in the editor.
 * @property {number} from
 * @property {number} to
 * @property {string} text  The new text, with "\n" as the line ending.
 */

const END = /\r\n?|\n/g;

/**
 * Return a text as editors use it: each line ends with "\n".
 * @param {string} text
 */
export const asEdited = (text) => text.replace(END, "\n");

/**
 * Apply changes that were made in an editor to the original text. Unchanged lines keep their line endings. New lines
 * have the most common one.
 * @param {string} text
 * @param {Change[]} changes  The changes, in order and without overlaps.
 */
export function applyChanges(text, changes) {
  const place = placesOf(text);
  const end = commonEnd(text);
  let made = "";
  let at = 0;
  for (const change of changes) {
    made += text.slice(at, place(change.from)) + change.text.replaceAll("\n", end);
    at = place(change.to);
  }
  return made + text.slice(at);
}

/**
 * Return the single change that converts one text to another, or null if they are the same.
 * @param {string} before
 * @param {string} after
 * @returns {Change | null}
 */
export function difference(before, after) {
  if (before === after) return null;
  const most = Math.min(before.length, after.length);
  let start = 0;
  while (start < most && before[start] === after[start]) start++;
  let end = 0;
  while (end < most - start && before[before.length - 1 - end] === after[after.length - 1 - end]) end++;
  return { from: start, to: before.length - end, text: after.slice(start, after.length - end) };
}

/**
 * Return a function that converts a position in the editor's text to a position in the original text.
 * @param {string} text
 * @returns {(place: number) => number}
 */
function placesOf(text) {
  const doubled = [...text.matchAll(/\r\n/g)].map(({ index }, before) => index - before);
  let passed = 0;
  return (place) => {
    while (passed < doubled.length && doubled[passed] < place) passed++;
    return place + passed; // Places are asked for in order.
  };
}

/**
 * Return the most common line ending of a text.
 * @param {string} text
 */
function commonEnd(text) {
  if (!text.includes("\r")) return "\n";
  const ends = text.match(END) ?? [];
  const counts = ["\n", "\r\n", "\r"].map((end) => ({ end, count: ends.filter((one) => one === end).length }));
  return counts.reduce((most, one) => (one.count > most.count ? one : most)).end;
}
