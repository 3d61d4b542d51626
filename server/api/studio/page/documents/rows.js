/** The rows of a list of documents: requests for a page of the list, and the status of each document. */

import { ApiError, ask } from "../api.js";
import { filtersOf } from "../list/operators.js";
import { titleOf } from "../text.js";

/**
 * @typedef {import("./status.js").Status} Status
 * @typedef {import("../model.js").Type} Type
 * @typedef {import("../list/resource.js").Column} Column
 * @typedef {import("../list/resource.js").Rows} Rows
 * @typedef {import("../list/resource.js").Row & {status: Status}} DocumentRow
 */

const MOST = 100; // ids in one filter
/** @type {Record<string, string>} */
const FILTERS = { published: "unmodified", modified: "modified", draft: "never-published" };

/**
 * Return the parameters for requesting a page. They do not populate relations.
 * @param {import("../model.js").Model} model
 * @param {Type} type
 * @param {import("../list/operators.js").Filterable[]} filters
 * @param {import("../list/state.js").ListState} state
 * @param {Column[]} columns
 */
export function queryOf(model, type, filters, { q, conditions, sort, choices, page }, columns) {
  const shown = columns.filter((column) => !column.related && !column.cell).map((column) => column.name);
  const fields = [...new Set(["updatedAt", ...(type.title ? [type.title] : []), ...shown])];
  const draft = model.statusParam(type);
  const common = { ...draft, ...(type.localized && choices.locale ? { locale: choices.locale } : {}) };
  const publicationStatus = "status" in draft ? true : undefined;
  if (type.single) return { ...common, fields, publicationStatus };
  return {
    ...common,
    fields,
    sort,
    _q: q,
    filters: filtersOf(filters, conditions),
    publicationFilter: choices.status ? FILTERS[choices.status] : undefined,
    publicationStatus,
    pagination: { page, pageSize: Math.min(model.pageSize.default, MOST) },
  };
}

/**
 * @param {import("../model.js").Model} model
 * @param {Type} type
 * @param {any} query
 * @param {Column[]} columns
 * @param {AbortSignal} signal
 * @returns {Promise<Rows>}
 */
export async function loadRows(model, type, query, columns, signal) {
  const populate = populateOf(columns);
  // A site may reject `populate` together with `pagination`. The first page needs no `pagination`.
  const isUsual = type.single || (query.pagination.page === 1 && query.pagination.pageSize === model.pageSize.default);
  const whole = populate && isUsual ? { ...query, populate, pagination: undefined } : query;
  const answer = type.single ? await readSingle(type, whole, signal) : await ask(type.path, { query: whole, signal });
  const documents = [answer.data].flat().filter(Boolean);
  const isMissing = populate && !isUsual && documents.length > 0;
  const related = isMissing ? await relatedOf(type, documents, query, populate, signal) : new Map();
  const statuses = [answer.meta.publicationStatus ?? []].flat();
  const rows = documents.map((document, index) => ({
    id: document.documentId,
    title: titleOf(type, document),
    values: { ...document, ...related.get(document.documentId) },
    status: statuses[index] ?? "published",
  }));
  const { total = rows.length, pageCount = 1 } = answer.meta.pagination ?? {};
  return { rows, total, pages: Math.max(pageCount, 1) };
}

/** @param {Column[]} columns */
function populateOf(columns) {
  const related = columns.filter((column) => column.related);
  if (!related.length) return undefined;
  return Object.fromEntries(related.map((column) => [column.name, { fields: [column.related] }]));
}

/**
 * Return the document of a single type in a list, which is empty if the document does not exist.
 * @param {Type} type
 * @param {object} query
 * @param {AbortSignal} signal
 */
async function readSingle(type, query, signal) {
  try {
    return await ask(type.path, { query, signal });
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return { data: null, meta: {} };
    throw error;
  }
}

/**
 * Return documents with their populated relations, by document id.
 * @param {Type} type
 * @param {any[]} documents
 * @param {{status?: string, locale?: string}} query
 * @param {object} populate
 * @param {AbortSignal} signal
 * @returns {Promise<Map<string, any>>}
 */
async function relatedOf(type, documents, { status, locale }, populate, signal) {
  const filters = { documentId: { $in: documents.map(({ documentId }) => documentId) } };
  const query = { status, locale, fields: ["documentId"], filters, populate };
  const { data } = await ask(type.path, { query, signal });
  return new Map(data.map((/** @type {any} */ document) => [document.documentId, document]));
}
