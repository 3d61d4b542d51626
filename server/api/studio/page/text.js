/** Formats values for display. */

const DAY_MS = 86_400_000;
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
const numbers = new Intl.NumberFormat("en");
const days = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
const timestamps = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });

/** @type {[Intl.RelativeTimeFormatUnit, number][]} */
const UNITS = [["day", DAY_MS], ["hour", 3_600_000], ["minute", 60_000]];

/** @param {number} count */
export const counted = (count) => numbers.format(count);

/**
 * @param {import("./model.js").Type} type
 * @param {any} document
 */
export function titleOf(type, document) {
  const title = type.title ? document[type.title] : "";
  return String(title || document.documentId || type.label);
}

/**
 * Return how long ago a time was. If it was more than a month ago, return the date.
 * @param {string} iso
 */
export function ago(iso) {
  const past = Date.now() - Date.parse(iso);
  if (past > 30 * DAY_MS || past < -DAY_MS) return days.format(new Date(iso));
  const [unit, ms] = UNITS.find(([, length]) => past >= length) ?? ["minute", Infinity];
  return ms === Infinity ? "just now" : relative.format(-Math.floor(past / ms), unit);
}

/** @param {string} iso */
export const timestamp = (iso) => timestamps.format(new Date(iso));

/**
 * Return the day of a date, independent of the time zone.
 * @param {string} iso
 */
export const day = (iso) => days.format(new Date(`${iso.slice(0, 10)}T12:00:00`));

/**
 * Return the name of an attribute as words: "readingMinutes" → "Reading minutes".
 * @param {string} name
 */
export function labelOf(name) {
  const parted = name.replace(/[_-]+/g, " ").replace(/([a-z\d])([A-Z])/g, "$1 $2");
  const words = parted.replace(/ [A-Z](?=[a-z])/g, (start) => start.toLowerCase());
  return words.charAt(0).toUpperCase() + words.slice(1);
}
