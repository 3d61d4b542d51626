/** How many documents of each type there are, and which were changed last. */

import { ask } from "./api.js";
import { keyOf, useRequest } from "./store/requests.js";

const RECENT = 12;

/**
 * @typedef {object} Changed  A document, as GET /overview has it.
 * @property {string} documentId
 * @property {string} type  The name of its type.
 * @property {string | null} title
 * @property {string} updatedAt
 */

/** @typedef {{counts: Record<string, number>, recent: Changed[]}} Overview  `counts` are by the names of types. */

/**
 * The overview of what may be listed, undefined until the server has answered.
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
