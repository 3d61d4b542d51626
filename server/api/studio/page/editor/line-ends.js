/** Texts whose lines end in any way: editors have one character for each end, and the text keeps its own. */

/**
 * @typedef {object} Change  At places of a text as an editor has it.
 * @property {number} from
 * @property {number} to
 * @property {string} text  Its lines end with "\n".
 */

const END = /\r\n?|\n/g;

/**
 * A text as editors have it: each line ends with "\n".
 * @param {string} text
 */
export const asEdited = (text) => text.replace(END, "\n");

/**
 * A text after changes that were made to it in an editor. Lines that no change touches end as they did; new ones
 * end as most of the others.
 * @param {string} text
 * @param {Change[]} changes  In order, none within another.
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
 * The one change that makes a text another; null where they are the same.
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
 * Where a place of the text as it is edited is in the text itself.
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
 * How most lines of a text end.
 * @param {string} text
 */
function commonEnd(text) {
  if (!text.includes("\r")) return "\n";
  const ends = text.match(END) ?? [];
  const counts = ["\n", "\r\n", "\r"].map((end) => ({ end, count: ends.filter((one) => one === end).length }));
  return counts.reduce((most, one) => (one.count > most.count ? one : most)).end;
}
