/** How many documents of each type there are, and which were changed last: one small request for each type. */

import { ask } from "./api.js";
import { keyOf, useRequest } from "./store/requests.js";

const RECENT = 8;

/**
 * @typedef {{count: number, recent: any[], error?: any}} Overview
 */

/** @type {Record<string, Overview>} */
const NOTHING = {};

/**
 * The overview of the types that may be listed, by their names; empty until the server has answered.
 * @param {import("./model.js").Model} model
 * @returns {Record<string, Overview>}
 */
export function useOverview(model) {
  const load = async (/** @type {AbortSignal} */ signal) => {
    const parts = model.listed.map(async (type) => [type.name, await overviewOf(model, type, signal)]);
    return Object.fromEntries(await Promise.all(parts));
  };
  return useRequest(keyOf("overview", model), load, { isContent: true }).value ?? NOTHING;
}

/**
 * @param {import("./model.js").Model} model
 * @param {import("./model.js").Type} type
 * @param {AbortSignal} signal
 * @returns {Promise<Overview>}
 */
async function overviewOf(model, type, signal) {
  const query = {
    ...readStatus(model, type),
    fields: ["updatedAt", ...(type.title ? [type.title] : [])],
    ...(type.single ? {} : { sort: "updatedAt:desc", pagination: { pageSize: RECENT } }),
  };
  try {
    const { data, meta } = await ask(type.path, { query, signal });
    const recent = Array.isArray(data) ? data : [data];
    return { count: meta.pagination?.total ?? 1, recent };
  } catch (error) {
    const { status, name } = /** @type {any} */ (error);
    if (status === 0 || name === "AbortError") throw error;
    const none = type.single && status === 404;
    return none ? { count: 0, recent: [] } : { count: 0, recent: [], error };
  }
}

/**
 * What is asked of documents that can be drafts: editors see the drafts, who may not sees what is published.
 * @param {import("./model.js").Model} model
 * @param {import("./model.js").Type} type
 */
export function readStatus(model, type) {
  return model.seesDrafts(type) ? { status: "draft" } : {};
}
