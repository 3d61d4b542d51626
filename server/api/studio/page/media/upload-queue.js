/**
 * The files that are being uploaded to the media library. Uploads continue while other pages of the studio are shown,
 * and after the connection was lost.
 *
 * Each file gets its documentId here. If the connection is lost during an upload, the server is asked whether it has a
 * file with this id. So no file is uploaded twice, and none is missing.
 */

import { ApiError } from "../api.js";
import { isReachable, whenBack } from "../connection/connection.js";
import { t } from "../language.js";
import { guardLeaving, isLeaveConfirmed } from "../router.js";
import { reloadContent } from "../store/requests.js";
import { useEffect, useState } from "../vendor/preact.js";
import { readFile, uploadFile } from "./requests.js";

/**
 * @typedef {object} Upload
 * @property {File} file
 * @property {string} folder
 * @property {string} documentId
 * @property {"waiting" | "sending" | "unsure" | "done" | "failed"} state  "unsure": the connection was lost before the
 *   server responded.
 * @property {number} sent  The number of bytes that were sent.
 * @property {number} lost  How often the connection was lost during the upload.
 * @property {string} error
 */

const AT_ONCE = 2; // requests
const RELOAD_FILES = 20; // the lists are requested again after each 20 files
const MOST_LOST = 3; // connections that may be lost during the upload of a file, which a proxy may cause
const LOST = t`The connection was lost several times during this upload`;
const UNREADABLE = t`The browser can't read this file. Folders can't be uploaded`;
const ID_CHARS = "abcdefghijklmnopqrstuvwxyz0123456789";

/** @type {Upload[]} */
let uploads = [];
/** @type {Set<() => void>} */
const listeners = new Set();
let stopGuarding = () => {};

/** Return all uploads since they were last dismissed. @returns {Upload[]} */
export function useUploads() {
  const [, render] = useState(0);
  useEffect(() => {
    const listener = () => render((count) => count + 1);
    listeners.add(listener);
    return () => {
      listeners.delete(listener);
    };
  }, []);
  return uploads;
}

/** @param {Upload} upload */
const isUnfinished = ({ state }) => state !== "done" && state !== "failed";

/**
 * Upload files into a folder.
 * @param {File[]} files
 * @param {string} folder
 */
export function addUploads(files, folder) {
  if (!files.length) return;
  if (!uploads.some(isUnfinished)) uploads = uploads.filter(({ state }) => state === "failed");
  const beginning = { folder, state: "waiting", sent: 0, lost: 0, error: "" };
  const added = files.map((file) => ({ ...beginning, file, documentId: newId() }));
  uploads = [...uploads, .../** @type {Upload[]} */ (added)];
  proceed();
}

/** Upload the files again whose upload has failed. */
export function retryUploads() {
  for (const upload of uploads) {
    if (upload.state === "failed") Object.assign(upload, { state: "unsure", lost: 0, error: "" });
  }
  proceed();
}

/** Forget the uploads that have ended. */
export function dismissUploads() {
  uploads = uploads.filter(isUnfinished);
  changed();
}

/** Start as many uploads as may be under way at once. */
function proceed() {
  const underWay = uploads.filter(({ state }) => state === "sending").length;
  const next = uploads.filter(({ state }) => state === "waiting" || state === "unsure");
  if (isReachable()) for (const upload of next.slice(0, Math.max(0, AT_ONCE - underWay))) send(upload);
  changed();
}

/** @param {Upload} upload */
async function send(upload) {
  const isUnsure = upload.state === "unsure";
  upload.state = "sending";
  try {
    if (!isUnsure || !(await isThere(upload))) await sendContent(upload);
    Object.assign(upload, { state: "done", sent: upload.file.size });
  } catch (/** @type {any} */ error) {
    const isLost = error instanceof ApiError && error.status === 0;
    if (isLost) upload.lost += 1;
    const isOver = !isLost || upload.lost >= MOST_LOST;
    const reason = isLost ? LOST : error.message;
    Object.assign(upload, { state: isOver ? "failed" : "unsure", sent: 0, error: isOver ? reason : "" });
  }
  const done = uploads.filter(({ state }) => state === "done").length;
  if (!uploads.some(isUnfinished) || (done > 0 && done % RELOAD_FILES === 0)) reloadContent();
  proceed();
}

/** @param {Upload} upload */
async function sendContent({ file, folder, documentId }) {
  await file.slice(0, 1).arrayBuffer().catch(() => {
    throw new Error(UNREADABLE);
  });
  try {
    await uploadFile(file, { documentId, folder }, (sent) => {
      const one = uploads.find((each) => each.documentId === documentId);
      if (one) one.sent = Math.min(sent, file.size);
      changed();
    });
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 409) throw error; // otherwise, an earlier request succeeded
  }
}

/** Return whether the server has the file. Throws ApiError. @param {Upload} upload */
async function isThere({ documentId }) {
  try {
    await readFile(documentId);
    return true;
  } catch (error) {
    // Without the permission to read the file, a second upload shows whether it is there.
    if (error instanceof ApiError && (error.status === 404 || error.status === 403)) return false;
    throw error;
  }
}

function changed() {
  stopGuarding();
  stopGuarding = uploads.some(isUnfinished) ? guarded() : () => {};
  for (const listener of [...listeners]) listener();
}

/** Ask before the studio itself is left. Its other pages can be opened. Returns a function that cancels this. */
function guarded() {
  const leaving = (/** @type {BeforeUnloadEvent} */ event) => isLeaveConfirmed() || event.preventDefault();
  addEventListener("beforeunload", leaving);
  const done = guardLeaving(() => true);
  return () => {
    removeEventListener("beforeunload", leaving);
    done();
  };
}

/** Return a new id of the form that the server's own ids have. */
function newId() {
  const numbers = crypto.getRandomValues(new Uint8Array(24));
  return Array.from(numbers, (number, i) => ID_CHARS[number % (i ? ID_CHARS.length : 26)]).join("");
}

whenBack(proceed);
