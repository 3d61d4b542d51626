/** The changes that a save would make to files. They are determined with a dry run. */

import { ApiError, ask } from "../api.js";
import { localeParam } from "../documents/beginning.js";
import { changesOf } from "../form/saving.js";
import { createRequest, publishOperations, writeRequest } from "../documents/writing.js";
import { t } from "../language.js";
import { keyOf, useRequest } from "../store/requests.js";

const TYPING_MS = 300;

/**
 * @typedef {object} FileChange
 * @property {string} path
 * @property {"create" | "update" | "delete"} action
 * @property {string[] | null} lines  The lines of a unified diff, or null if it can't be shown.
 */

/**
 * The result of a dry run. `files` is null until the changes are known. `error` is the reason for which the save would
 * be rejected, or "" if it would not.
 * @typedef {{files: FileChange[] | null, error: string}} DryRun
 */

/**
 * Return the changes that saving the form would make. Throws ApiError if the save would be rejected.
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
 * Return the single request that saves a form. It also publishes the document if this is requested.
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
 * Return the changes that saving the form would make. They are determined again whenever the user stops typing.
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
  return said.length ? t`Can't be saved yet: ${said.join("; ")}` : error.message;
}
