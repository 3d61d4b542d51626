/** Timestamps in the zone of whoever looks at them, as the inputs of a browser have them. */

/** The zone's name, such as Europe/Paris. */
export const ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone;

/**
 * A timestamp as the clock here shows it: "2024-02-29T11:20", with seconds where there are some.
 * @param {string} iso
 */
export function toLocal(iso) {
  const date = new Date(iso);
  if (Number.isNaN(date.getTime())) return "";
  const shifted = new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, -1);
  return shifted.endsWith(":00.000") ? shifted.slice(0, 16) : shifted.replace(/\.000$/, "");
}

/**
 * The timestamp of what the clock here shows.
 * @param {string} local
 */
export const fromLocal = (local) => new Date(local).toISOString();

/**
 * A time of day as the API has it, HH:mm:ss.SSS.
 * @param {string} text  Such as "10:20".
 */
export function wholeTime(text) {
  const [clock, fraction = ""] = (text.length === 5 ? `${text}:00` : text).split(".");
  return `${clock}.${fraction.padEnd(3, "0")}`;
}
