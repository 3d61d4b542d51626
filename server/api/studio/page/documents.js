/** The documents that a list shows, as its address wants them. */

import { ApiError, ask } from "./api.js";
import { filterables, filtersOf } from "./operators.js";
import { readStatus } from "./overview.js";
import { keyOf, useRequest } from "./store/requests.js";
import { useMemo } from "./vendor/preact.js";

/**
 * @typedef {"published" | "modified" | "draft"} Status  `modified`: published, with a draft beside it.
 * @typedef {{document: any, status: Status}} Row
 * @typedef {{rows?: Row[], total: number, pages: number}} Part
 * @typedef {import("./model.js").Type} Type
 * @typedef {import("./columns.js").Column} Column
 */

/** @type {Part} */
const NOTHING = { total: 0, pages: 1 };
const MOST = 100; // ids in one filter
/** @type {Record<Status, string>} */
const FOUND_BY = { published: "unmodified", modified: "modified", draft: "never-published" };

/**
 * A page of a type's documents. While another one is asked for, the one before stays, and `loading` is true.
 * @param {import("./model.js").Model} model
 * @param {Type} type
 * @param {import("./list-state.js").ListState} state
 * @param {Column[]} columns  What is to be shown.
 * @returns {Part & {error?: any, loading: boolean, retry: () => void}}
 */
export function useDocuments(model, type, state, columns) {
  const query = useMemo(() => queryOf(model, type, state, columns), [model, type, state, columns]);
  const key = keyOf("list", model, type, JSON.stringify(query), columns.map(({ name }) => name).join());
  const load = (/** @type {AbortSignal} */ signal) => loadPart(type, query, columns, signal);
  const { value, ...rest } = useRequest(key, load, { isContent: true, isKept: true });
  return { ...(value ?? NOTHING), ...rest };
}

/**
 * What the server is asked for: documents without what they relate to, which not every site answers in pages.
 * @param {import("./model.js").Model} model
 * @param {Type} type
 * @param {import("./list-state.js").ListState} state
 * @param {Column[]} columns
 */
function queryOf(model, type, state, columns) {
  const shown = columns.filter((column) => !column.related).map((column) => column.name);
  const fields = [...new Set(["updatedAt", ...(type.title ? [type.title] : []), ...shown])];
  const draft = readStatus(model, type);
  const common = { ...draft, ...(type.localized && state.locale ? { locale: state.locale } : {}) };
  if (type.single) return { ...common, fields };
  return {
    ...common,
    fields,
    sort: state.sort,
    _q: state.q,
    filters: filtersOf(filterables(model, type), state.conditions),
    publicationFilter: "status" in draft ? FOUND_BY[/** @type {Status} */ (state.status)] : undefined,
    pagination: { page: state.page, pageSize: Math.min(model.pageSize.default, MOST) },
  };
}

/**
 * @param {Type} type
 * @param {any} query
 * @param {Column[]} columns
 * @param {AbortSignal} signal
 * @returns {Promise<Part>}
 */
async function loadPart(type, query, columns, signal) {
  const answer = type.single ? await single(type, query, signal) : await ask(type.path, { query, signal });
  const documents = [answer.data].flat().filter(Boolean);
  const { total = documents.length, pageCount = 1 } = answer.meta.pagination ?? {};
  const about = { type, ids: documents.map((document) => document.documentId), query, signal };
  const [draft, modified, related] = documents.length
    ? await Promise.all([idsOf(about, "never-published"), idsOf(about, "modified"), relatedOf(about, columns)])
    : [new Set(), new Set(), new Map()];
  const rows = documents.map((document) => {
    const { documentId } = document;
    /** @type {Status} */
    const status = draft.has(documentId) ? "draft" : modified.has(documentId) ? "modified" : "published";
    return { document: { ...document, ...related.get(documentId) }, status };
  });
  return { rows, total, pages: Math.max(pageCount, 1) };
}

/**
 * The document of a single type, if it is there.
 * @param {Type} type
 * @param {object} query
 * @param {AbortSignal} signal
 */
async function single(type, query, signal) {
  try {
    return await ask(type.path, { query, signal });
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return { data: null, meta: {} };
    throw error;
  }
}

/**
 * More of documents that are known.
 * @typedef {{type: Type, ids: string[], query: any, signal: AbortSignal}} About
 * @param {About} about
 * @param {object} wanted
 * @returns {Promise<any[]>}
 */
async function more({ type, ids, query, signal }, wanted) {
  const { status, locale } = query;
  const common = { status, locale, fields: ["documentId"], ...wanted };
  if (type.single) return [(await single(type, common, signal)).data].filter(Boolean);
  return (await ask(type.path, { query: { ...common, filters: { documentId: { $in: ids } } }, signal })).data;
}

/**
 * Which of the documents a publication filter finds; none, for whoever sees what is published alone.
 * @param {About} about
 * @param {string} publicationFilter
 * @returns {Promise<Set<string>>}
 */
async function idsOf(about, publicationFilter) {
  const found = about.query.status ? await more(about, { publicationFilter }) : [];
  return new Set(found.map((document) => document.documentId));
}

/**
 * What the documents relate to, as far as that is shown, by their ids.
 * @param {About} about
 * @param {Column[]} columns
 * @returns {Promise<Map<string, any>>}
 */
async function relatedOf(about, columns) {
  const shown = columns.filter((column) => column.related);
  if (!shown.length) return new Map();
  const populate = Object.fromEntries(shown.map((column) => [column.name, { fields: [column.related] }]));
  const found = await more(about, { populate });
  return new Map(found.map((document) => [document.documentId, document]));
}
