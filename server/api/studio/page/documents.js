/** The documents that a list shows, as its address wants them. */

import { ApiError, ask } from "./api.js";
import { readStatus } from "./overview.js";
import { useEffect, useState } from "./vendor/preact.js";

/**
 * @typedef {"published" | "modified" | "draft"} Status  `modified`: published, with a draft beside it.
 * @typedef {{document: any, status: Status}} Row
 * @typedef {{rows?: Row[], total: number, pages: number, error?: any}} Part
 */

/**
 * A page of a type's documents. While another one is asked for, the one before stays.
 * @param {import("./model.js").Model} model
 * @param {import("./model.js").Type} type
 * @param {URLSearchParams} params
 * @returns {Part & {again: () => void}}
 */
export function useDocuments(model, type, params) {
  const [part, set] = useState(/** @type {Part} */ ({ total: 0, pages: 1 }));
  const [tries, setTries] = useState(0);
  const asked = params.toString();
  useEffect(() => {
    const controller = new AbortController();
    load(model, type, new URLSearchParams(asked), controller.signal).then(set, (error) => {
      if (error.name !== "AbortError") set({ total: 0, pages: 1, error });
    });
    return () => controller.abort();
  }, [model, type, asked, tries]);
  return { ...part, again: () => setTries(tries + 1) };
}

/**
 * @param {import("./model.js").Model} model
 * @param {import("./model.js").Type} type
 * @param {URLSearchParams} params
 * @param {AbortSignal} signal
 * @returns {Promise<Part>}
 */
async function load(model, type, params, signal) {
  const fields = ["updatedAt", "publishedAt", ...(type.title ? [type.title] : [])];
  const status = readStatus(model, type);
  const query = { ...status, fields };
  if (type.single) {
    const documents = await single(type, query, signal);
    return { rows: await withStatus(type, documents, status, signal), total: documents.length, pages: 1 };
  }
  const page = { page: params.get("page") ?? 1, pageSize: model.pageSize.default };
  const { data, meta } = await ask(type.path, {
    query: { ...query, sort: "updatedAt:desc", pagination: page },
    signal,
  });
  const { total, pageCount } = meta.pagination;
  return { rows: await withStatus(type, data, status, signal), total, pages: Math.max(pageCount, 1) };
}

/**
 * The document of a single type, if it is there.
 * @param {import("./model.js").Type} type
 * @param {object} query
 * @param {AbortSignal} signal
 */
async function single(type, query, signal) {
  try {
    return [(await ask(type.path, { query, signal })).data];
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return [];
    throw error;
  }
}

/**
 * The documents with their status, for which the server is asked what of them was never published, and what differs
 * from what is. Whoever may not see drafts sees what is published alone.
 * @param {import("./model.js").Type} type
 * @param {any[]} documents
 * @param {object} status
 * @param {AbortSignal} signal
 * @returns {Promise<Row[]>}
 */
async function withStatus(type, documents, status, signal) {
  if (!("status" in status) || !documents.length) {
    return documents.map((document) => ({ document, status: "published" }));
  }
  const ids = documents.map((document) => document.documentId);
  const [draft, modified] = await Promise.all(
    ["never-published", "modified"].map((which) => idsOf(type, ids, which, signal)),
  );
  return documents.map((document) => {
    const { documentId } = document;
    return { document, status: draft.has(documentId) ? "draft" : modified.has(documentId) ? "modified" : "published" };
  });
}

/**
 * Which of some documents a publication filter finds.
 * @param {import("./model.js").Type} type
 * @param {string[]} ids
 * @param {string} publicationFilter
 * @param {AbortSignal} signal
 * @returns {Promise<Set<string>>}
 */
async function idsOf(type, ids, publicationFilter, signal) {
  const query = { fields: ["documentId"], status: "draft", publicationFilter };
  const found = type.single
    ? await single(type, query, signal)
    : (
        await ask(type.path, {
          query: { ...query, filters: { documentId: { $in: ids } }, pagination: { pageSize: ids.length } },
          signal,
        })
      ).data;
  return new Set(found.map((/** @type {any} */ document) => document.documentId));
}
