/** Saving: only what has changed is sent, for the version that it was made from. */

import { ask } from "../api.js";
import { pathOf } from "./reading.js";

/**
 * @typedef {import("../model.js").Type} Type
 * @typedef {{type: Type, id: string, locale: object, draft: boolean}} Address  `draft`: whether the draft is written.
 */

/**
 * Write some attributes of a version. Throws ApiError: 412 where others have changed the same meanwhile.
 * @param {Address} address
 * @param {Record<string, any>} data
 * @param {string} etag  Of the version that was read, "" for one that was not there.
 */
export async function write({ type, id, locale, draft }, data, etag) {
  await ask(pathOf(type, id), {
    method: "PUT",
    query: { ...locale, ...statusParam(draft), fields: ["documentId"] },
    body: { data },
    headers: etag ? { "If-Match": etag, Prefer: "merge" } : {},
  });
}

/**
 * Publish a draft as it was read, not one that somebody has changed since. Throws ApiError.
 * @param {Address} address
 * @param {string} etag  Of the draft.
 */
export async function publish({ type, id, locale }, etag) {
  const path = (/** @type {object} */ query) => `${pathOf(type, id)}?${new URLSearchParams({ ...locale, ...query })}`;
  const operations = [
    { method: "PUT", path: path({ status: "draft", fields: "documentId" }), ifMatch: etag, body: { data: {} } },
    { method: "PUT", path: path({ fields: "documentId" }), body: { data: {} } },
  ];
  await ask("batch", { method: "POST", body: { operations } });
}

/**
 * Make a document; returns its id. Throws ApiError.
 * @param {Address} address
 * @param {Record<string, any>} data
 * @returns {Promise<string>}
 */
export async function create({ type, locale, draft }, data) {
  const { data: made } = await ask(type.path, {
    method: type.single ? "PUT" : "POST",
    query: { ...locale, ...statusParam(draft), fields: ["documentId"] },
    body: { data },
  });
  return made.documentId;
}

/**
 * Delete a document in all locales, with its draft. Throws ApiError.
 * @param {Address} address
 */
export async function remove({ type, id }) {
  await ask(pathOf(type, id), { method: "DELETE", query: type.localized ? { locale: "*" } : {} });
}

/** @param {boolean} draft */
const statusParam = (draft) => (draft ? { status: "draft" } : {});
