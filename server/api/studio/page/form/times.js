/** Converts timestamps to and from the user's time zone, in the format of the browser's inputs. */

/** The name of the user's time zone, such as Europe/Paris. */
export const ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone;

/**
 * Convert a timestamp to local time: "2024-02-29T11:20". Seconds are included if they are not zero.
 * @param {string} iso
 */
export function toLocal(iso) {
  const date = new Date(iso);
  if (Number.isNaN(date.getTime())) return "";
  const shifted = new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, -1);
  return shifted.endsWith(":00.000") ? shifted.slice(0, 16) : shifted.replace(/\.000$/, "");
}

/**
 * Convert a local time to a timestamp.
 * @param {string} local
 */
export const fromLocal = (local) => new Date(local).toISOString();

/**
 * Convert a time of day to the API's format, HH:mm:ss.SSS.
 * @param {string} text  The time, such as "10:20".
 */
export function wholeTime(text) {
  const [clock, fraction = ""] = (text.length === 5 ? `${text}:00` : text).split(".");
  return `${clock}.${fraction.padEnd(3, "0")}`;
}
