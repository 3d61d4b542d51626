/** The versions of a document in one locale: the commits that changed it, from GET /history. */

import { ask } from "../api.js";
import { localeParam } from "../documents/beginning.js";
import { t } from "../language.js";
import { labelOf, timestamp } from "../text.js";
import { keyOf as requestKey, usePages } from "../store/requests.js";
import { useMemo } from "../vendor/preact.js";

/**
 * @typedef {object} Version
 * @property {string} commit  The commit id, or "" for a version that is not committed or for the current version.
 * @property {"published" | "draft"} status
 * @property {"create" | "update" | "delete" | "rename" | "now"} action
 * @property {string} who
 * @property {string | null} date
 * @property {string} message
 * @property {string[] | null} attributes  The changed attributes, or null if they are not known.
 */

const PAGE = 20;
const NAMED = 4; // fields that are named of a version

/**
 * Return the API's path for the history of a document.
 * @param {{type: import("../model.js").Type, id: string}} document
 */
export function historyPath({ type, id }) {
  const path = type.path.replace("/api/", "history/");
  return type.single ? path : `${path}/${encodeURIComponent(id)}`;
}

/** Return the key of a version in lists and URLs. @param {Version} version */
export const keyOf = ({ commit, status }) => `${commit}/${status}`;

/** @typedef {{list?: Version[], hasMore: boolean, error?: any, more: () => void, retry: () => void}} Versions */

/**
 * Return the versions that have been loaded so far, newest first. They are loaded again when `mark` changes.
 * @param {import("../documents/form.js").Subject} subject
 * @param {string} mark
 * @returns {Versions}
 */
export function useVersions(subject, mark) {
  const path = historyPath(subject);
  const load = async (/** @type {number} */ page, /** @type {AbortSignal} */ signal) => {
    const query = { ...localeParam(subject), page, pageSize: PAGE };
    const { data, meta } = await ask(path, { query, signal });
    return { items: /** @type {Version[]} */ (data.map(versionOf)), pages: meta.pagination.pageCount };
  };
  const { items, ...rest } = usePages(requestKey(path, subject.locale, mark), load);
  const list = useMemo(() => items && grouped(items), [items]);
  return { list, ...rest };
}

/** @param {any} entry @returns {Version} */
function versionOf({ commit, author, date, message, status, action, attributes }) {
  return { commit: commit ?? "", status, action, who: author?.name ?? "", date, message: message ?? "", attributes };
}

/**
 * Remove duplicate versions. For example, publishing deletes the draft in the same commit.
 * @param {Version[]} versions
 */
function grouped(versions) {
  const seen = new Set();
  return versions.filter((version) => {
    const twice = seen.has(keyOf(version));
    seen.add(keyOf(version));
    const goes = version.status === "draft" && version.action === "delete";
    const published = (/** @type {Version} */ one) => one.commit === version.commit && one.status === "published";
    return !twice && !(goes && versions.some(published));
  });
}

/** @param {Version} version */
export function whoOf({ action, commit, who }) {
  if (action === "now") return t`Current version`;
  return commit ? who || t`Somebody` : t`Not committed yet`;
}

const ACTIONS = { create: t`Created`, delete: t`Deleted`, rename: t`File renamed`, update: "", now: "" };

/**
 * Return a description of what a version changed.
 * @param {Version} version
 */
export function deedOf({ action, status, attributes }) {
  if (status === "draft" && action === "create") return t`Draft created`;
  if (status === "draft" && action === "delete") return t`Draft discarded`;
  if (action === "create" || action === "delete") return ACTIONS[action];
  const fields = fieldsOf(attributes);
  return [ACTIONS[action], fields].filter(Boolean).join(": ") || t`No visible field changed`;
}

/** Return the labels of some fields as text. @param {string[] | null} names */
function fieldsOf(names) {
  if (names === null) return t`The file of this version can't be read`;
  const labels = names.map(labelOf);
  if (labels.length <= NAMED + 1) return labels.join(", ");
  return `${labels.slice(0, NAMED).join(", ")} and ${labels.length - NAMED} more`;
}

/**
 * Return a version as one line, for the menu in which versions are selected.
 * @param {Version} version
 * @param {boolean} drafts  Whether the line must mention that the version is a draft.
 */
export function lineOf(version, drafts) {
  const kind = drafts ? (version.status === "draft" ? "draft" : "published") : "";
  if (version.action === "now") return [t`Current version`, kind].filter(Boolean).join(", ");
  const time = version.date ? timestamp(version.date) : "";
  return [whoOf(version), time, kind].filter(Boolean).join(", ");
}
