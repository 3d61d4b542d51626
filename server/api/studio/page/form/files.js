/** The files of the site: finding, uploading and describing them. */

import { ask } from "../api.js";
import { fileOf } from "./shape.js";

const FIELDS = ["name", "url", "alternativeText", "mime", "formats"];
const MOST = 24; // files that are shown to choose from

/**
 * The latest files whose names have a text in them. Throws ApiError, and AbortError.
 * @param {string} text
 * @param {boolean} pictures  Whether no other files are asked for.
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
 * All that the library has of a file. Throws ApiError.
 * @param {number} id
 */
export async function readFile(id) {
  return (await ask(`api/upload/files/${id}`)).body;
}

/**
 * Add files to the library; returns them as a form holds them. Throws ApiError.
 * @param {File[]} files
 */
export async function uploadFiles(files) {
  const form = new FormData();
  for (const file of files) form.append("files", file);
  const { body } = await ask("api/upload", { method: "POST", body: form });
  return body.map(fileOf);
}

/**
 * Say what a file is called and shows. Throws ApiError.
 * @param {number} id
 * @param {Record<string, any>} info  Of `name`, `alternativeText`, `caption` and `focalPoint`, what changes.
 */
export async function describeFile(id, info) {
  const form = new FormData();
  form.append("fileInfo", JSON.stringify(info));
  await ask("api/upload", { method: "POST", query: { id }, body: form });
}
