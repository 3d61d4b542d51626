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
 * @property {"published" | "draft"} status
 * @property {"create" | "update" | "delete"} action
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
