/** The media library: finding, uploading and describing files. */

import { ask } from "../api.js";
import { fileOf } from "./shape.js";

const FIELDS = ["name", "url", "alternativeText", "mime", "formats"];
const MOST = 24; // files that are shown to choose from

/**
 * Return the latest files whose names contain a text. Throws ApiError and AbortError.
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
 * Return all data of a file in the library. Throws ApiError.
 * @param {number} id
 */
export async function readFile(id) {
  return (await ask(`api/upload/files/${id}`)).body;
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
 * Change the name and descriptions of a file. Throws ApiError.
 * @param {number} id
 * @param {Record<string, any>} info  The changed properties among `name`, `alternativeText`, `caption` and
 *   `focalPoint`.
 */
export async function describeFile(id, info) {
  const form = new FormData();
  form.append("fileInfo", JSON.stringify(info));
  await ask("api/upload", { method: "POST", query: { id }, body: form });
}
