/** What a save would change in files: the save is tried, and nothing is written. */

import { ApiError, ask } from "../api.js";
import { useReturns } from "../connection/connection.js";
import { localeParam } from "../form/beginning.js";
import { changesOf } from "../form/saving.js";
import { createRequest, publishOperations, writeRequest } from "../form/writing.js";
import { useEffect, useState } from "../vendor/preact.js";

const TYPING_MS = 300;

/**
 * @typedef {object} FileChange
 * @property {string} path
 * @property {"create" | "update" | "delete"} action
 * @property {string[]} lines  Of a unified diff.
 */

/** @typedef {{files: FileChange[] | null, error: string}} Tried  `files` is null until it is known. */

/**
 * What saving the form would change. Throws ApiError for what the save would be refused for.
 * @param {import("../form/editing.js").Subject} subject
 * @param {import("../form/editing.js").State} state
 * @param {boolean} publishes
 * @param {AbortSignal} [signal]
 * @returns {Promise<FileChange[]>}
 */
export async function tryToSave(subject, state, publishes, signal) {
  const { path, query = {}, ...options } = saveRequest(subject, state, publishes);
  const { data } = await ask(path, { ...options, query: { ...query, dryRun: true }, signal });
  return data.files;
}

/**
 * The request that saves a form, in one step also where it publishes.
 * @param {import("../form/editing.js").Subject} subject
 * @param {import("../form/editing.js").State} state
 * @param {boolean} publishes
 * @returns {{path: string, query?: object} & import("../api.js").Options}
 */
function saveRequest(subject, state, publishes) {
  const address = { ...subject, locale: localeParam(subject), draft: subject.drafts && !publishes };
  const data = changesOf(subject, state);
  const etag = state.version?.etag ?? "";
  if (!subject.id) return createRequest(address, data);
  if (!publishes || !subject.drafts) return writeRequest(address, data, etag);
  return { path: "batch", method: "POST", body: { operations: publishOperations(address, data, etag) } };
}

/**
 * What saving the form would change, tried again whenever the typing rests.
 * @param {import("../form/editing.js").Subject} subject
 * @param {import("../form/editing.js").State} state
 * @param {boolean} asked  Whether there is anything to save.
 * @returns {Tried}
 */
export function useTried(subject, state, asked) {
  const [tried, set] = useState(/** @type {Tried} */ ({ files: null, error: "" }));
  const returns = useReturns();
  useEffect(() => {
    if (!asked) {
      set({ files: [], error: "" });
      return undefined;
    }
    const controller = new AbortController();
    const timer = setTimeout(() => {
      tryToSave(subject, state, false, controller.signal).then(
        (files) => set({ files, error: "" }),
        (error) => error.name !== "AbortError" && set({ files: [], error: wordsOf(error) }),
      );
    }, TYPING_MS);
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [subject, state.values, state.base, state.version, asked, returns]);
  return tried;
}

/** @param {any} error */
export function wordsOf(error) {
  if (!(error instanceof ApiError)) throw error;
  const said = (error.details?.errors ?? []).map((/** @type {any} */ one) => one.message);
  return said.length ? `It can't be saved yet: ${said.join("; ")}` : error.message;
}
