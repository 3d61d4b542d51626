/** The question before files are deleted that documents use, or that are on a branch, where there is no undo. */

import { Question } from "../dialog.js";
import { plural, t } from "../language.js";
import { html } from "../vendor/preact.js";
import { readUsage } from "./requests.js";

const MOST_TITLES = 5;

/** @typedef {{total: number, titles: string[], hidden: boolean}} Used  `hidden`: other documents may use the files. */

/**
 * Return how the files are used, or null if they are not. Throws ApiError.
 * @param {any[]} files  The files, as returned by the API.
 * @returns {Promise<Used | null>}
 */
export async function usageOf(files) {
  const all = await Promise.all(files.map(({ id }) => readUsage(id).catch(unknownUsage)));
  const total = all.reduce((sum, one) => sum + one.total, 0);
  const hidden = all.some((one) => one.hidden);
  const titles = all.flatMap(({ uses }) => uses.map(({ title, documentId }) => title || documentId));
  return total || hidden ? { total, titles: [...new Set(titles)], hidden } : null;
}

/** Return the usage of a file whose details the role may not read. @param {any} error */
function unknownUsage(error) {
  if (error.status !== 403) throw error;
  return { uses: [], total: 0, hidden: true };
}

/**
 * @param {{subject: string, used: Used | null, isServed: boolean, confirm: () => void, close: () => void}} props
 *   `subject`: the name of the file, or how many there are.
 */
export function DeleteQuestion({ subject, used, isServed, confirm, close }) {
  const { total = 0, titles = [], hidden = false } = used ?? {};
  const names = titles.slice(0, MOST_TITLES).join(", ") + (titles.length > MOST_TITLES ? ", …" : "");
  const text = [
    total && plural(total, { one: "Used in {0} place: {1}.", other: "Used in {0} places: {1}." }, names),
    hidden && t`Documents that your role can't see may use this.`,
    isServed ? t`The fields become empty. This can be undone for an hour.`
      : t`Fields that use this become empty. This can't be undone on a branch.`,
  ];
  return html`<${Question} title=${t`Delete ${subject}?`} text=${text.filter(Boolean).join(" ")} label=${t`Delete`}
    ...${{ confirm, close }} />`;
}
