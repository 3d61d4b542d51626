/** Saves documents. Requests contain only the changed attributes, and the entity tag of the version that was edited. */

import { ask } from "../api.js";
import { UNDOABLE } from "../undo/undo.js";
import { pathOf } from "./reading.js";

/**
 * @typedef {import("../model.js").Type} Type
 * @typedef {{type: Type, id: string, locale: object, draft: boolean}} Address  `draft` is true if the draft is written.
 */

/**
 * Write some attributes of a version. Throws ApiError, with status 412 if someone else has changed the same attributes.
 * @param {Address} address
 * @param {Record<string, any>} data
 * @param {string} etag  The entity tag of the version that was read, or "" if it did not exist.
 */
export async function write(address, data, etag) {
  const { path, ...options } = writeRequest(address, data, etag);
  await ask(path, options);
}

/**
 * Return the request that writes some attributes of a version.
 * @param {Address} address
 * @param {Record<string, any>} data
 * @param {string} etag
 */
export function writeRequest({ type, id, locale, draft }, data, etag) {
  return {
    path: pathOf(type, id),
    method: "PUT",
    query: { ...locale, ...statusParam(draft), fields: ["documentId"] },
    body: { data },
    headers: /** @type {Record<string, string>} */ (etag ? { "If-Match": etag, Prefer: "merge" } : {}),
  };
}

/**
 * Publish a draft, provided that it has not changed since it was read. Throws ApiError.
 * @param {Address} address
 * @param {string} etag  The entity tag of the draft.
 */
export async function publish(address, etag) {
  await ask("batch", { method: "POST", body: { operations: publishOperations(address, {}, etag) } });
}

/**
 * Return the operations of a batch that changes a draft and publishes it.
 * @param {Address} address
 * @param {Record<string, any>} data
 * @param {string} etag  The entity tag of the draft.
 */
export function publishOperations({ type, id, locale }, data, etag) {
  const path = (/** @type {object} */ query) => `${pathOf(type, id)}?${new URLSearchParams({ ...locale, ...query })}`;
  return [
    { method: "PUT", path: path({ status: "draft", fields: "documentId" }), ifMatch: etag, body: { data } },
    { method: "PUT", path: path({ fields: "documentId" }), body: { data: {} } },
  ];
}

/**
 * Create a document. Resolves to its id. Throws ApiError.
 * @param {Address} address
 * @param {Record<string, any>} data
 * @returns {Promise<string>}
 */
export async function create(address, data) {
  const { path, ...options } = createRequest(address, data);
  return (await ask(path, options)).data.documentId;
}

/**
 * Return the request that creates a document.
 * @param {Address} address
 * @param {Record<string, any>} data
 */
export function createRequest({ type, locale, draft }, data) {
  return {
    path: type.path,
    method: type.single ? "PUT" : "POST",
    query: { ...locale, ...statusParam(draft), fields: ["documentId"] },
    body: { data },
    headers: /** @type {Record<string, string>} */ ({}),
  };
}

/**
 * Delete a document in all locales, including drafts. Resolves to the id with which this can be undone. Throws
 * ApiError.
 * @param {Address} address
 */
export async function remove({ type, id }) {
  const query = type.localized ? { locale: "*" } : {};
  const { undo } = await ask(pathOf(type, id), { method: "DELETE", query, headers: UNDOABLE });
  return undo;
}

/**
 * Unpublish a document in a locale, or discard its draft. Resolves to the id with which this can be undone. Throws
 * ApiError.
 * @param {Address} address
 * @param {"unpublish" | "discard"} action
 * @param {string} etag  The entity tag of the draft to discard, or "" for any draft.
 */
export async function act({ type, id, locale }, action, etag) {
  const headers = { ...UNDOABLE, ...(etag ? { "If-Match": etag } : {}) };
  const query = { ...locale, fields: ["documentId"] };
  return (await ask(`${pathOf(type, id)}/actions/${action}`, { method: "POST", query, headers })).undo;
}

/** @param {boolean} draft */
const statusParam = (draft) => (draft ? { status: "draft" } : {});
