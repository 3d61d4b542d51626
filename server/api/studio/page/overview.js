/** The overview of the site: the number of documents of each content type, and the latest changes. */

import { ask } from "./api.js";
import { keyOf, useRequest } from "./store/requests.js";

const RECENT = 12;

/**
 * @typedef {object} Changed  A document, as returned by GET /overview.
 * @property {string} documentId
 * @property {string} type  The name of its content type.
 * @property {string | null} title
 * @property {string} updatedAt
 */

/**
 * @typedef {{counts: Record<string, number>, recent: Changed[]}} Overview  `counts` are by the name of the content
 *   type.
 */

/**
 * Return the overview of the content types that may be listed. It is undefined until the server has responded.
 * @param {import("./model.js").Model} model
 * @returns {Overview | undefined}
 */
export function useOverview(model) {
  const seesDrafts = model.listed.some((type) => model.seesDrafts(type));
  const query = { limit: RECENT, status: seesDrafts ? "draft" : undefined };
  const load = async (/** @type {AbortSignal} */ signal) => {
    const { data, meta } = await ask("overview", { query, signal });
    return { counts: meta.counts, recent: data };
  };
  const key = model.listed.length ? keyOf("overview", model) : "";
  return useRequest(key, load, { isContent: true }).value;
}
