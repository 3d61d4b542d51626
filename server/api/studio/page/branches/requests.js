/** All requests about branches, and the texts that several pages show about them. */

import { ask } from "../api.js";
import { plural, t } from "../language.js";
import { useRequest } from "../store/requests.js";
import { useMemo } from "../vendor/preact.js";

/**
 * @typedef {object} Branch
 * @property {string} name
 * @property {string} commit  The id of the last commit.
 * @property {{name: string, email: string}} author  The author of the last commit.
 * @property {string} date  When the last commit was made. It is null if there is a `problem`.
 * @property {string} [problem]  Why the last commit can't be read.
 * @property {boolean} served
 * @property {boolean} checkedOut
 * @property {boolean} merged  Whether the live site has everything on the branch.
 * @property {number | null} documents  The number of changed documents, or null if it is not known.
 */

const EVERY_MS = 10_000;

/**
 * Return the branches: the served one first, then those with the newest commits. They are requested again at regular
 * intervals, and after each write.
 * @param {boolean} isWanted  Whether to request them.
 * @param {boolean} [isLate]  Whether other requests go first.
 */
export function useBranches(isWanted, isLate = false) {
  const load = (/** @type {AbortSignal} */ signal) => ask("branches", { signal });
  const options = { everyMs: EVERY_MS, isContent: true, isLate };
  const { value, ...rest } = useRequest(isWanted ? "branches" : "", load, options);
  const list = useMemo(() => value && /** @type {Branch[]} */ ([...value.data]).sort(inOrder), [value]);
  return { list, served: list?.find(({ served }) => served)?.name ?? "", ...rest };
}

/** @param {Branch} a @param {Branch} b */
function inOrder(a, b) {
  const byDate = (b.date ?? "").localeCompare(a.date ?? "");
  return Number(b.served) - Number(a.served) || byDate || a.name.localeCompare(b.name);
}

/** Return the API's path for a branch. @param {string} name */
const branchPath = (name) => `branches/${name.split("/").map(encodeURIComponent).join("/")}`;

/** Return the header that makes the server reject a request if the branch has changed. @param {string} commit */
const ifUnchanged = (commit) => ({ "If-Match": `"${commit}"` });

/** @param {string} name @param {string} from  The branch to copy, or "" for the live site. */
export const createBranch = (name, from) =>
  ask("branches", { method: "POST", body: { name, ...(from ? { from } : {}) } });

/**
 * Return a page of the documents and media files that a branch has changed.
 * @param {string} name
 * @param {{page?: number, pageSize: number}} query
 * @param {{signal?: AbortSignal, exact?: boolean}} [options]
 */
export const readChanges = (name, query, options = {}) => ask(`${branchPath(name)}/changes`, { query, ...options });

/**
 * Merge a branch into the live site, unless it has changed since `commit`.
 * @param {string} name
 * @param {string} commit
 * @param {{resolve: import("./merging.js").Resolution, message?: string}} body
 */
export const mergeBranch = (name, commit, body) =>
  ask(`${branchPath(name)}/merge`, { method: "POST", headers: ifUnchanged(commit), body });

/** Delete a branch. With `commit`, only if it has not changed since. @param {string} name @param {string} [commit] */
export const deleteBranch = (name, commit) =>
  ask(branchPath(name), { method: "DELETE", headers: commit ? ifUnchanged(commit) : {} });

/** Return how much a branch changes. @param {{documents: number | null, merged: boolean}} branch */
export function documentsText({ documents: count, merged }) {
  if (merged) return t`Nothing to merge`;
  if (count === null) return t`Can't be compared with the live site`;
  if (count === 0) return t`Changes, but not of documents`;
  return plural(count, { one: "{0} changed document", other: "{0} changed documents" });
}

/** Return how many documents a merge changes. @param {number} count */
export const countOf = (count) => plural(count, { one: "{0} document", other: "{0} documents" });
