/** The media library: all requests for files. */

import { ask } from "../api.js";
import { t } from "../language.js";
import { UNDOABLE } from "../undo/undo.js";
import { fileOf } from "./file.js";

const FIELDS = ["name", "url", "alternativeText", "mime", "formats", "updatedAt"];
const MOST = 24; // files that are shown to choose from

/**
 * Return the latest files whose names contain a text. Throws ApiError or AbortError.
 * @param {string} text
 * @param {boolean} pictures  Whether to return pictures only.
 * @param {AbortSignal} signal
 */
export async function findFiles(text, pictures, signal) {
  const filters = {
    ...(text.trim() ? { name: { $containsi: text.trim() } } : {}),
    ...(pictures ? { mime: { $startsWith: "image/" } } : {}),
  };
  const { body } = await ask("api/upload/files", {
    query: { fields: FIELDS, filters, sort: "createdAt:desc", limit: MOST },
    signal,
  });
  return body.map(fileOf);
}

/**
 * Return a page of the library. Throws ApiError or AbortError.
 * @param {object} query
 * @param {AbortSignal} signal
 * @returns {Promise<{files: any[], total: number, pages: number}>}
 */
export async function readPage(query, signal) {
  const { data, meta } = await ask("api/upload/files/page", { query, signal });
  return { files: data, total: meta.pagination.total, pages: Math.max(meta.pagination.pageCount, 1) };
}

/**
 * Return the folders with the number of files directly in them. Throws ApiError or AbortError.
 * @param {AbortSignal} signal
 * @returns {Promise<{path: string, files: number}[]>}
 */
export async function readFolders(signal) {
  return (await ask("api/upload/folders", { signal })).data;
}

/**
 * Return all data of a file in the library. Throws ApiError.
 * @param {number | string} id  The file's id or documentId.
 */
export async function readFile(id) {
  return (await ask(`api/upload/files/${encodeURIComponent(id)}`)).body;
}

/**
 * @typedef {{type: string, documentId: string, locale: string, status: "published" | "draft", title: string | null,
 *   attributes: string[]}} Use  A document version that uses a file.
 */

/**
 * Return the documents that use a file. Throws ApiError or AbortError.
 * @param {number} id
 * @param {AbortSignal} [signal]
 * @returns {Promise<{uses: Use[], total: number, hidden: boolean | null}>}
 */
export async function readUsage(id, signal) {
  const { data, meta } = await ask(`api/upload/files/${id}/usage`, { signal });
  return { uses: data, ...meta };
}

/**
 * Upload files to the library. Resolves to the files as a form stores them. Throws ApiError.
 * @param {File[]} files
 */
export async function uploadFiles(files) {
  const form = new FormData();
  for (const file of files) form.append("files", file);
  const { body } = await ask("api/upload", { method: "POST", body: form });
  return body.map(fileOf);
}

/**
 * Upload one file. If a file with this documentId exists already, throws ApiError with the status 409. Throws ApiError
 * and AbortError.
 * @param {File} file
 * @param {{documentId: string, folder: string}} info
 * @param {(bytes: number) => void} progress  Called with the number of bytes that were sent.
 */
export async function uploadFile(file, info, progress) {
  const form = new FormData();
  form.append("files", file);
  form.append("fileInfo", JSON.stringify(info));
  const via = (/** @type {URL} */ url, /** @type {RequestInit} */ init) => sendWithProgress(url, init, progress);
  await ask("api/upload", { method: "POST", body: form, via });
}

/**
 * Replace the content of a file. Its address stays. Returns the ids with which this can be undone. Throws ApiError.
 * @param {any} old  The file, as returned by the API.
 * @param {File} file
 */
export async function replaceFile(old, file) {
  const form = new FormData();
  form.append("files", file);
  form.append("fileInfo", JSON.stringify({ name: old.name }));
  const { undo } = await ask("api/upload", { method: "POST", query: { id: old.id }, body: form, headers: UNDOABLE });
  return undo ? [undo] : [];
}

/**
 * Delete a file. Returns the ids with which this can be undone. Throws ApiError.
 * @param {any} file  The file, as returned by the API.
 */
export async function removeFile({ id }) {
  const { undo } = await ask(`api/upload/files/${id}`, { method: "DELETE", headers: UNDOABLE });
  return undo ? [undo] : [];
}

/**
 * Move a file. The documents that use it are updated. Returns the ids with which this can be undone, and the number of
 * links in texts that still lead to the old address. Throws ApiError.
 * @param {any} file  The file, as returned by the API.
 * @param {{folder: string, fileName?: string}} to
 */
export async function moveFile({ id }, to) {
  const { meta, undo } = await ask(`api/upload/files/${id}/move`, { method: "POST", body: to, headers: UNDOABLE });
  return { undo: undo ? [undo] : [], links: meta.links.length };
}

/**
 * Send a request like `fetch`, which can't report how much of the body was sent.
 * @param {URL} url
 * @param {RequestInit} init
 * @param {(bytes: number) => void} progress
 * @returns {Promise<Response>}
 */
function sendWithProgress(url, { method = "GET", headers = {}, body }, progress) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open(method, url);
    for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
    request.upload.onprogress = ({ loaded }) => progress(loaded);
    request.onload = () => resolve(new Response(request.responseText, { status: request.status }));
    request.onerror = () => reject(new TypeError(t`The request failed`));
    request.onabort = request.onerror;
    request.send(/** @type {FormData} */ (body));
  });
}

/**
 * Change the name and descriptions of a file. Throws ApiError.
 * @param {number} id
 * @param {Record<string, any>} info  The changed properties among `name`, `alternativeText`, `caption` and
 *   `focalPoint`.
 * @param {Record<string, any>} previous  The values that the user has seen. If somebody else has changed one, nothing
 *   is changed, and the error has the status 412 and `details.current`.
 */
export async function describeFile(id, info, previous) {
  const form = new FormData();
  form.append("fileInfo", JSON.stringify(info));
  form.append("previous", JSON.stringify(previous));
  await ask("api/upload", { method: "POST", query: { id }, body: form });
}
