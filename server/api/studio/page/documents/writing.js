/** Saving: only what has changed is sent, for the version that it was made from. */

import { ask } from "../api.js";
import { UNDOABLE } from "../undo/undo.js";
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
export async function write(address, data, etag) {
  const { path, ...options } = writeRequest(address, data, etag);
  await ask(path, options);
}

/**
 * The request that writes some attributes of a version.
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
 * Publish a draft as it was read, not one that somebody has changed since. Throws ApiError.
 * @param {Address} address
 * @param {string} etag  Of the draft.
 */
export async function publish(address, etag) {
  await ask("batch", { method: "POST", body: { operations: publishOperations(address, {}, etag) } });
}

/**
 * The operations of a batch that change a draft and publish it.
 * @param {Address} address
 * @param {Record<string, any>} data
 * @param {string} etag  Of the draft.
 */
export function publishOperations({ type, id, locale }, data, etag) {
  const path = (/** @type {object} */ query) => `${pathOf(type, id)}?${new URLSearchParams({ ...locale, ...query })}`;
  return [
    { method: "PUT", path: path({ status: "draft", fields: "documentId" }), ifMatch: etag, body: { data } },
    { method: "PUT", path: path({ fields: "documentId" }), body: { data: {} } },
  ];
}

/**
 * Make a document; returns its id. Throws ApiError.
 * @param {Address} address
 * @param {Record<string, any>} data
 * @returns {Promise<string>}
 */
export async function create(address, data) {
  const { path, ...options } = createRequest(address, data);
  return (await ask(path, options)).data.documentId;
}

/**
 * The request that makes a document.
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
 * Delete a document in all locales, with its draft; returns the id to undo it by. Throws ApiError.
 * @param {Address} address
 */
export async function remove({ type, id }) {
  const query = type.localized ? { locale: "*" } : {};
  const { undo } = await ask(pathOf(type, id), { method: "DELETE", query, headers: UNDOABLE });
  return undo;
}

/**
 * Unpublish a document in a locale, or discard its draft; returns the id to undo it by. Throws ApiError.
 * @param {Address} address
 * @param {"unpublish" | "discard"} action
 * @param {string} etag  Of the draft that is discarded, "" for any.
 */
export async function act({ type, id, locale }, action, etag) {
  const headers = { ...UNDOABLE, ...(etag ? { "If-Match": etag } : {}) };
  const query = { ...locale, fields: ["documentId"] };
  return (await ask(`${pathOf(type, id)}/actions/${action}`, { method: "POST", query, headers })).undo;
}

/** @param {boolean} draft */
const statusParam = (draft) => (draft ? { status: "draft" } : {});
