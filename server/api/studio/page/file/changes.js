/** What a save would change in files: the save is tried, and nothing is written. */

import { ApiError, ask } from "../api.js";
import { localeParam } from "../documents/beginning.js";
import { changesOf } from "../form/saving.js";
import { createRequest, publishOperations, writeRequest } from "../documents/writing.js";
import { keyOf, useRequest } from "../store/requests.js";

const TYPING_MS = 300;

/**
 * @typedef {object} FileChange
 * @property {string} path
 * @property {"create" | "update" | "delete"} action
 * @property {string[]} lines  Of a unified diff.
 */

/**
 * What a save would do: the changes of files, null until they are known, and why it would be refused, "" if it is not.
 * @typedef {{files: FileChange[] | null, error: string}} DryRun
 */

/**
 * What saving the form would change. Throws ApiError for what the save would be refused for.
 * @param {import("../documents/form.js").Subject} subject
 * @param {import("../form/editing.js").State} state
 * @param {boolean} publishes
 * @param {AbortSignal} [signal]
 * @returns {Promise<FileChange[]>}
 */
async function tryToSave(subject, state, publishes, signal) {
  const { path, query = {}, ...options } = saveRequest(subject, state, publishes);
  const { data } = await ask(path, { ...options, query: { ...query, dryRun: true }, signal });
  return data.files;
}

/**
 * The request that saves a form, in one step also where it publishes.
 * @param {import("../documents/form.js").Subject} subject
 * @param {import("../form/editing.js").State} state
 * @param {boolean} publishes
 * @returns {{path: string, query?: object} & import("../api.js").Options}
 */
function saveRequest(subject, state, publishes) {
  const address = { ...subject, locale: localeParam(subject), draft: subject.drafts && !publishes };
  const data = changesOf({ model: subject.model, attributes: subject.type.attributes }, state);
  const etag = state.version?.etag ?? "";
  if (!subject.id) return createRequest(address, data);
  if (!publishes || !subject.drafts) return writeRequest(address, data, etag);
  return { path: "batch", method: "POST", body: { operations: publishOperations(address, data, etag) } };
}

/**
 * What saving the form would change, tried again whenever the typing pauses.
 * @param {import("../documents/form.js").Subject} subject
 * @param {import("../form/editing.js").State} state
 * @param {{hasChanges: boolean, publishes?: boolean, delayMs?: number}} options
 * @returns {DryRun}
 */
export function useDryRun(subject, state, { hasChanges, publishes = false, delayMs = TYPING_MS }) {
  const key = keyOf("dry run", subject, state.values, state.base, state.version, publishes);
  const load = (/** @type {AbortSignal} */ signal) => tryToSave(subject, state, publishes, signal);
  const { value, error } = useRequest(hasChanges ? key : "", load, { delayMs });
  if (!hasChanges) return { files: [], error: "" };
  return error ? { files: [], error: wordsOf(error) } : { files: value ?? null, error: "" };
}

/** @param {any} error */
function wordsOf(error) {
  if (!(error instanceof ApiError)) throw error;
  const said = (error.details?.errors ?? []).map((/** @type {any} */ one) => one.message);
  return said.length ? `Can't be saved yet: ${said.join("; ")}` : error.message;
}
