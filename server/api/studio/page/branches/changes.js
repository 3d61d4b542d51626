/** The documents that a branch has changed, from GET /branches/NAME/changes. */

import { ApiError } from "../api.js";
import { referencesIn } from "../history/comparison.js";
import { keyOf, usePages } from "../store/requests.js";
import { readChanges } from "./requests.js";

/**
 * @typedef {object} Change  A changed version of a document, as returned by the API.
 * @property {string} type
 * @property {string} documentId
 * @property {string | null} title
 * @property {string} locale
 * @property {"published" | "draft" | ""} status  It is "" if the document was published or unpublished.
 * @property {"create" | "update" | "delete" | "publish" | "unpublish"} action
 * @property {Record<string, {from: any, to: any}>} attributes
 */

/**
 * @typedef {object} Entry
 * @property {Change | null} change  Null in the only entry for a branch without changes.
 * @property {import("../history/comparison.js").Known} known  The documents and files to which the values refer.
 * @property {Compared} compared
 */

/**
 * @typedef {object} MediaChange  A changed media file, or the changed description of one, which has attributes.
 * @property {string} path
 * @property {"create" | "update" | "delete"} action
 * @property {Record<string, {from: any, to: any}>} attributes
 */

/**
 * @typedef {object} Compared  The commits that were compared, and how much differs.
 * @property {string} from
 * @property {string} to
 * @property {number} total  The number of changed versions of documents.
 * @property {MediaChange[]} media  The first changed files.
 * @property {number} mediaTotal
 * @property {FileChange[]} files  The changed files of content types, settings and migrations, as far as the user may
 *   read them.
 * @property {number} filesTotal
 */

/** @typedef {import("../file/changes.js").FileChange} FileChange */

const PAGE_SIZE = 20;

/**
 * Return the changes with one row for a document that was published or unpublished. The API lists two changed versions
 * in this case, the draft before the published one, and one of them is deleted.
 * @param {Change[]} changes
 */
export function combined(changes) {
  const rows = /** @type {Change[]} */ ([]);
  for (const change of changes) {
    const draft = rows[rows.length - 1];
    const isPublished = draft?.action === "delete";
    if (draft && documentOf(draft) === documentOf(change) && isPublished !== (change.action === "delete")) {
      const attributes = isPublished ? joined(draft, change) : joined(change, draft);
      rows[rows.length - 1] = { ...change, action: isPublished ? "publish" : "unpublish", status: "", attributes };
    } else rows.push(change);
  }
  return rows;
}

/** @param {Change} change */
const documentOf = ({ type, documentId, locale }) => keyOf(type, documentId, locale);

/**
 * Return the attributes that differ between a deleted version and the one that is kept.
 * @param {Change} gone
 * @param {Change} kept
 */
function joined(gone, kept) {
  if (kept.action === "update") return kept.attributes;
  const names = Object.keys({ ...gone.attributes, ...kept.attributes });
  /** @type {Change["attributes"]} */
  const attributes = {};
  for (const name of names) {
    const [from = null, to = null] = [gone.attributes[name]?.from, kept.attributes[name]?.to];
    if (JSON.stringify(from) !== JSON.stringify(to)) attributes[name] = { from, to };
  }
  return attributes;
}

/**
 * Return the documents and files on a branch to which values refer. If they can't be read, for example because the
 * branch has another schema, return none: their ids are shown instead of titles.
 * @param {string} branch
 * @param {import("../model.js").Model} model
 * @param {Parameters<typeof referencesIn>[1]} compared
 * @param {AbortSignal} signal
 */
export async function referencesOn(branch, model, compared, signal) {
  try {
    return await referencesIn(model, compared, { at: branch, signal });
  } catch (error) {
    if (!(error instanceof ApiError) || error.status === 0) throw error;
    return { documents: new Map(), files: new Map() };
  }
}

/**
 * Return the changes of a branch that have been loaded so far.
 * @param {import("../model.js").Model} model
 * @param {string} name
 * @param {string} mark  A text that changes if the changes have to be loaded again, or "" to load nothing.
 */
export function useBranchChanges(model, name, mark) {
  const load = async (/** @type {number} */ page, /** @type {AbortSignal} */ signal) => {
    const { data, meta } = await readChanges(name, { page, pageSize: PAGE_SIZE }, { signal, exact: true });
    /** @type {Change[]} */
    const changes = data;
    const values = changes.flatMap(({ type, attributes }) => {
      const found = model.types.find((one) => one.name === type);
      return found ? [{ type: found, differences: attributes }] : [];
    });
    const known = await referencesOn(name, model, values, signal);
    const { from, to, media, mediaTotal, files, filesTotal, pagination } = meta;
    const compared = { from, to, total: pagination.total, media, mediaTotal, files, filesTotal };
    /** @type {Entry[]} */
    const items = changes.map((change) => ({ change, known, compared }));
    return { items: items.length ? items : [{ change: null, known, compared }], pages: meta.pagination.pageCount };
  };
  return usePages(mark && keyOf("branch changes", name, mark), load);
}
