/** Remembers in the browser up to which event a user has seen the changes by others. */

import { SITE } from "../base.js";

const VISIT_MS = 30 * 60_000; // A longer pause ends a visit.

/**
 * @typedef {object} Visit
 * @property {string} log  The id of the event log.
 * @property {number} since  The last event before this visit.
 * @property {number} last  The last event that was shown.
 * @property {number} at  When it was shown.
 */

/** @param {import("../model.js").Model} model */
const keyOf = ({ caller }) => `bifolio visit ${SITE.pathname} ${caller.kind} ${caller.name}`;

/**
 * Return the number of the event after which changes are new, or "" on the first visit.
 * @param {import("../model.js").Model} model
 */
export function lastVisit(model) {
  const visit = stored(model);
  if (!visit) return "";
  return String(Date.now() - visit.at > VISIT_MS ? visit.last : visit.since);
}

/**
 * Remember what was shown. `isRead` means that the user has seen all of it.
 * @param {import("../model.js").Model} model
 * @param {{log: string, last: number}} shown
 * @param {boolean} [isRead]
 */
export function noteVisit(model, { log, last }, isRead = false) {
  const before = stored(model);
  const isNew = !before || before.log !== log || isRead;
  const since = isNew ? last : Number(lastVisit(model));
  try {
    localStorage.setItem(keyOf(model), JSON.stringify({ log, since, last, at: Date.now() }));
  } catch {
    // Without storage, each visit is the first one.
  }
}

/** @param {import("../model.js").Model} model @returns {Visit | null} */
function stored(model) {
  try {
    return JSON.parse(localStorage.getItem(keyOf(model)) ?? "null");
  } catch {
    return null;
  }
}
