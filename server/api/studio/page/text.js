/** Formats values for display, in the language of the studio. */

import { LANGUAGE, LOCALE, plural, t } from "./language.js";

export { counted } from "./language.js";

const DAY_MS = 86_400_000;
const CAPITALISED = ["de"]; // languages in which nouns have a capital letter within a sentence, too
const relative = new Intl.RelativeTimeFormat(LOCALE, { numeric: "auto" });
const days = new Intl.DateTimeFormat(LOCALE, { dateStyle: "medium" });
const timestamps = new Intl.DateTimeFormat(LOCALE, { dateStyle: "medium", timeStyle: "short" });

/** @type {[Intl.RelativeTimeFormatUnit, number][]} */
const UNITS = [["day", DAY_MS], ["hour", 3_600_000], ["minute", 60_000]];

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
  return ms === Infinity ? t`just now` : relative.format(-Math.floor(past / ms), unit);
}

/**
 * Return a name as it is written within a sentence: "New article", but in German "Artikel anlegen".
 * @param {string} name
 */
export const inSentence = (name) => (CAPITALISED.includes(LANGUAGE) ? name : name.toLowerCase());

/** Return a number of seconds with two decimals. @param {number} seconds */
export const secondsText = (seconds) => {
  return seconds.toLocaleString(LOCALE, { minimumFractionDigits: 2, maximumFractionDigits: 2 });
};

/** @param {string} iso */
export const timestamp = (iso) => timestamps.format(new Date(iso));

/** @param {number} count */
export const filesText = (count) => plural(count, { one: "{0} file", other: "{0} files" });

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
