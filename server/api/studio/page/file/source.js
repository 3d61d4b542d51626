/** The file of a document, as returned by the API. */

import { ask } from "../api.js";
import { localeParam } from "../documents/beginning.js";
import { keyOf, useRequest } from "../store/requests.js";

/**
 * @typedef {object} Source  The file, as returned by the API.
 * @property {string} path
 * @property {string} text
 * @property {string} otherKeys
 * @property {string} status
 * @property {{line: number | null, message: string, fix: string} | null} problem
 * @property {{path: string, locale: string, status: string}[]} files
 * @property {string} etag
 */

/**
 * Return the API's path for the file of a document.
 * @param {import("../documents/form.js").Subject} subject
 */
export function sourcePath({ type, id }) {
  const name = type.path.split("/").pop();
  return type.single ? `source/${name}` : `source/${name}/${encodeURIComponent(id)}`;
}

/**
 * Read the file that contains the version that the form edits.
 * @param {import("../documents/form.js").Subject} subject
 * @param {AbortSignal} [signal]
 * @returns {Promise<Source>}
 */
export async function readSource(subject, signal) {
  const query = { ...localeParam(subject), ...(subject.drafts ? { status: "draft" } : {}) };
  const { data, meta, etag } = await ask(sourcePath(subject), { query, signal });
  return { ...data, files: meta.files, etag };
}

/**
 * Return the file's content. It is read again whenever the document is.
 * @param {import("../documents/form.js").Subject} subject
 * @param {import("../documents/reading.js").Version | undefined} version
 * @returns {{source?: Source, failure?: any}}
 */
export function useSource(subject, version) {
  const key = version ? keyOf("source", subject, version) : "";
  const { value: source, error: failure } = useRequest(key, (signal) => readSource(subject, signal));
  return { source, failure };
}
