/** The state of a merge of a branch into the live site: its conflicts, and what happens if the connection is lost. */

import { ApiError } from "../api.js";
import { useBack } from "../connection/connection.js";
import { t } from "../language.js";
import { PAGE, clearMessage, showError, showNotice } from "../store/messages.js";
import { reloadContent } from "../store/requests.js";
import { useState } from "../vendor/preact.js";
import { countOf, mergeBranch, readChanges } from "./requests.js";

/**
 * @typedef {"ours" | "theirs" | {value: any}} Choice  The live site's value, the branch's value, or another value.
 * @typedef {{documents: Record<string, Choice | Record<string, Choice>>, files: Record<string, Choice>}} Resolution
 */

/**
 * @typedef {object} Conflict  A document in conflict, as returned by the API.
 * @property {string} document
 * @property {string} type
 * @property {string} documentId
 * @property {string | null} title
 * @property {string} locale
 * @property {"published" | "draft"} status
 * @property {"ours" | "theirs"} [deleted]  The side that deleted the document.
 * @property {Record<string, {base?: any, ours?: any, theirs?: any, cut?: boolean}>} [attributes]
 */

/** @typedef {{conflicts: Conflict[], files: string[], total: number}} Conflicts */

/** @typedef {{type: string, documentId: string, locale: string, text: string}} Fault  An invalid document. */

/**
 * @typedef {object} Merging
 * @property {"ready" | "busy" | "unsure"} phase  `unsure`: it is not known whether the branch was merged, because the
 *   connection was lost.
 * @property {Conflicts | null} conflicts  The conflicts that have no choice yet, if there are any.
 * @property {boolean} isBlocked  Whether the merge would have overwritten uncommitted changes.
 * @property {Fault[]} faults  What has to be corrected on the branch before it can be merged.
 * @property {(message: string) => Promise<void>} merge
 * @property {(choices: Resolution) => Promise<void>} resolve  Merge again, with choices that resolve the conflicts.
 * @property {() => void} cancel  Forget the conflicts and all choices.
 */

const MAX_NAMED_FILES = 5;
const LOST = t`The connection was lost, and the branch was not merged. Merge it again.`;
const CHANGED = t`Someone has changed this branch since this page was loaded. Look at its changes, then merge again.`;
const INVALID = t`The branch was not merged, because these documents would be invalid. Correct them on the branch.`;
const FORBIDDEN = t`The branch was not merged, because your role may not make all of its changes on the live site.`;
const OUTDATED = t`The live site or the branch has changed while you chose. Start the merge again.`;
/** @type {Resolution} */
const NOTHING = { documents: {}, files: {} };

/**
 * @param {string} name  The name of the branch.
 * @param {string} commit  The last commit of the branch that the user has seen.
 * @returns {Merging}
 */
export function useMerging(name, commit) {
  const [phase, setPhase] = useState(/** @type {Merging["phase"]} */ ("ready"));
  const [conflicts, setConflicts] = useState(/** @type {Conflicts | null} */ (null));
  const [chosen, choose] = useState(NOTHING);
  const [message, setMessage] = useState("");
  const [faults, setFaults] = useState(/** @type {Fault[]} */ ([]));
  const [isBlocked, setBlocked] = useState(false);
  const end = (/** @type {string} */ notice) => {
    setPhase("ready");
    setConflicts(null);
    choose(NOTHING);
    showNotice(PAGE, notice);
    reloadContent();
  };
  const send = async (/** @type {Resolution} */ resolve, /** @type {string} */ message) => {
    choose(resolve);
    setMessage(message);
    setPhase("busy");
    setFaults([]);
    setBlocked(false);
    clearMessage(PAGE);
    try {
      const body = { resolve, ...(message.trim() ? { message } : {}) };
      const { data } = await mergeBranch(name, commit, body);
      end(noticeOf(data, name));
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      setPhase(error.status === 0 ? "unsure" : "ready");
      if (error.details?.conflicts) return setConflicts(error.details);
      if (error.status !== 0) showError(PAGE, reasonOf(error, resolve !== NOTHING));
      setFaults(faultsOf(error));
      setBlocked(uncommittedOf(error).length > 0);
      if (error.status === 412) reloadContent();
    }
  };
  useBack(async () => {
    if (phase !== "unsure") return;
    try {
      const { meta } = await readChanges(name, { pageSize: 1 });
      if (meta.from === meta.to) return end(t`${name} was merged into the live site.`);
      setPhase("ready");
      showError(PAGE, LOST);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (error.status === 0) return; // This is called again when the server is back.
      setPhase("ready");
      showError(PAGE, `${error.message}.`);
    }
  });
  const cancel = () => {
    setConflicts(null);
    choose(NOTHING);
    setBlocked(false);
    clearMessage(PAGE);
  };
  return {
    phase,
    conflicts,
    isBlocked,
    faults,
    merge: (text) => send(NOTHING, text),
    resolve: (choices) => send(joined(chosen, choices), message),
    cancel,
  };
}

/** @param {Resolution} before @param {Resolution} added @returns {Resolution} */
function joined(before, added) {
  const documents = { ...before.documents };
  for (const [name, choice] of Object.entries(added.documents)) {
    const earlier = documents[name];
    const both = typeof choice === "object" && typeof earlier === "object";
    documents[name] = both ? { ...earlier, ...choice } : choice;
  }
  return { documents, files: { ...before.files, ...added.files } };
}

/** @param {{result: string, documents: number, files: number}} merged @param {string} name */
function noticeOf({ result, documents, files }, name) {
  if (result === "nothing") return t`Everything on ${name} was already on the live site.`;
  if (!documents && files) return t`${name} was merged into the live site. No document has changed.`;
  return t`${name} was merged into the live site. ${countOf(documents)} changed.`;
}

/** Return the invalid documents that an error names. @param {ApiError} error @returns {Fault[]} */
function faultsOf({ details }) {
  return (details?.errors ?? []).flatMap((/** @type {{path: string[], message: string}} */ { path, message }) => {
    const [document, ...attributes] = path;
    const [type, documentId, locale] = String(document).split("/");
    if (!locale) return [];
    return [{ type, documentId, locale, text: attributes.length ? message.slice(document.length + 1) : message }];
  });
}

/** Return the files with uncommitted changes that a merge would have overwritten. @param {ApiError} error */
const uncommittedOf = ({ status, details }) => /** @type {string[]} */ ((status === 409 && details?.paths) || []);

/** @param {ApiError} error @param {boolean} hasChoices */
function reasonOf(error, hasChoices) {
  const { status, message } = error;
  if (faultsOf(error).length) return INVALID;
  const uncommitted = uncommittedOf(error);
  if (uncommitted.length) {
    const names = uncommitted.slice(0, MAX_NAMED_FILES).join(", ") + (uncommitted[MAX_NAMED_FILES] ? ", …" : "");
    return t`The branch was not merged, because it would overwrite uncommitted changes of the live site: ${names}.
      Commit them, then merge again.`;
  }
  if (status === 403 && message === "Forbidden") return FORBIDDEN;
  if (status === 404) return t`This branch does not exist anymore. Someone else has discarded it.`;
  if (status === 412) return CHANGED;
  if (hasChoices && message.includes("which has no conflict")) return OUTDATED;
  return t`The branch was not merged. ${message}.`;
}
