/** How many documents of each type there are, and which were changed last: one small request for each type. */

import { ask } from "./api.js";
import { useBack } from "./connection/connection.js";
import { useCallback, useEffect, useState } from "./vendor/preact.js";

const RECENT = 8;

/**
 * @typedef {{count: number, recent: any[], error?: any}} Overview
 */

/**
 * The overview of the types that may be listed, by their names, as far as the server has answered.
 * @param {import("./model.js").Model} model
 * @returns {[Record<string, Overview>, () => void]}
 */
export function useOverview(model) {
  const [overviews, set] = useState(/** @type {Record<string, Overview>} */ ({}));
  const refresh = useCallback(() => {
    for (const type of model.listed) {
      overviewOf(model, type).then((one) => {
        // What is known stays until the server is back.
        if (one.error?.status !== 0) set((before) => ({ ...before, [type.name]: one }));
      });
    }
  }, [model]);
  useEffect(refresh, [refresh]);
  useBack(refresh);
  return [overviews, refresh];
}

/**
 * @param {import("./model.js").Model} model
 * @param {import("./model.js").Type} type
 * @returns {Promise<Overview>}
 */
async function overviewOf(model, type) {
  const query = {
    ...readStatus(model, type),
    fields: ["updatedAt", ...(type.title ? [type.title] : [])],
    ...(type.single ? {} : { sort: "updatedAt:desc", pagination: { pageSize: RECENT } }),
  };
  try {
    const { data, meta } = await ask(type.path, { query });
    const recent = Array.isArray(data) ? data : [data];
    return { count: meta.pagination?.total ?? 1, recent };
  } catch (error) {
    const none = type.single && /** @type {any} */ (error).status === 404;
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
