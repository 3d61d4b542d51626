/** What the buttons of a form do: save what has changed, merged with what others have changed, and publish it. */

import { ApiError } from "../api.js";
import { FORM, clearMessage, showError, showNotice } from "../store/messages.js";
import { localeParam } from "./beginning.js";
import { listen, readAgain } from "./latest.js";
import { faultsIn, faultsOf } from "./rules.js";
import { sentValue } from "./shape.js";
import { forget, placeOf } from "./unsaved.js";
import { changedNames, pick } from "./values.js";
import { create, publish, write } from "./writing.js";

/**
 * @typedef {import("./editing.js").State} State
 * @typedef {import("./editing.js").Subject} Subject
 * @typedef {import("./latest.js").Work} Work
 */

const CHANGED_BY_OTHERS = "Saved. Somebody else has changed it as well: look at it, then publish.";
export const UNREACHED = "The server can't be reached. What you have typed is kept here.";
const CHOOSE = "Somebody else has changed the same. Choose what is to stay, then save.";

/**
 * Save what has changed, and publish it where that is wanted.
 * @param {Work} work
 * @param {boolean} publishes
 */
export async function save(work, publishes) {
  const { subject, now, update, done } = work;
  const state = now.current;
  if (state.busy || state.phase !== "ready") return;
  if (Object.keys(state.theirs).length) return refuse(work, [], CHOOSE);
  const faults = faultsToTell(subject, state, publishes);
  if (faults.length) return refuse(work, faults, countOf(faults));
  update({ busy: publishes ? "publishing" : "saving", errors: {} });
  clearMessage(FORM);
  try {
    const id = subject.id ? await saveThere(work, publishes) : await saveNew(work, publishes);
    if (id) done(id);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    refuse(work, faultsIn(error), wordsOf(error));
  } finally {
    update({ busy: "" });
    if (work.reads.current.missed) listen(work);
  }
}

/** @param {Work} work @param {boolean} publishes */
async function saveNew({ subject, now, update }, publishes) {
  const { model, type, locale } = subject;
  const { values } = now.current;
  const address = { ...subject, locale: localeParam(subject), draft: subject.drafts && !publishes };
  const id = await create(address, changesOf(subject, now.current));
  forget(placeOf(model, type, "", locale)); // What is typed from now on belongs to the document.
  update({ base: values });
  showNotice(FORM, publishes || !subject.drafts ? "Saved" : "Saved as a draft");
  return id;
}

/**
 * Save a document that is there; returns its id, "" where there is something to choose first.
 * @param {Work} work
 * @param {boolean} publishes
 */
async function saveThere(work, publishes) {
  const { subject, now, update } = work;
  const { type, drafts } = subject;
  const before = now.current.base;
  const mine = changedNames(before, now.current.values);
  if (!mine.length && (!publishes || !now.current.version)) {
    showNotice(FORM, "There is nothing to save");
    return "";
  }
  if (mine.length && !(await writeMerged(work))) return "";
  const others = Object.keys(before).filter((name) => !mine.includes(name));
  const { version } = now.current;
  if (!publishes || !drafts) {
    showNotice(FORM, drafts ? "Saved as a draft" : "Saved");
    return subject.id;
  }
  if (changedNames(pick(before, others), pick(now.current.base, others)).length) {
    showNotice(FORM, CHANGED_BY_OTHERS);
    return subject.id;
  }
  await publish({ type, id: subject.id, locale: localeParam(subject), draft: true }, version?.etag ?? "");
  await readAgain(work, now.current.values);
  showNotice(FORM, "Published");
  return subject.id;
}

/**
 * Write what has changed, merged with what others have changed meanwhile; false where both changed the same.
 * @param {Work} work
 */
async function writeMerged(work) {
  const { subject, now, update } = work;
  const address = { ...subject, locale: localeParam(subject), draft: subject.drafts };
  for (let tries = 0; ; tries++) {
    const { values, version } = now.current;
    try {
      await write(address, changesOf(subject, now.current), version?.etag ?? "");
      await readAgain(work, values);
      return true;
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 412 || tries > 2) throw error;
    }
    await readAgain(work, now.current.base);
    if (Object.keys(now.current.theirs).length) {
      showError(FORM, CHOOSE);
      return false;
    }
  }
}

/** @param {Work} work @param {import("./rules.js").Fault[]} faults @param {string} text */
function refuse({ now, update }, faults, text) {
  const errors = Object.fromEntries(faults.map(({ path, message }) => [path.join("."), message]));
  update({ errors, refused: now.current.refused + 1 });
  showError(FORM, text);
}

/** @param {Subject} subject @param {State} state @param {boolean} publishes */
function faultsToTell({ model, type, id, drafts }, { base, values }, publishes) {
  const named = type.drafts ? [] : changedNames(base, values);
  const faults = faultsOf(model, type.attributes, values, { draft: drafts && !publishes });
  return type.drafts || !id ? faults : faults.filter(({ path }) => named.includes(path[0]));
}

/** @param {any[]} faults */
const countOf = ({ length }) => (length === 1 ? "One field is not right yet" : `${length} fields are not right yet`);

/** @param {ApiError} error */
function wordsOf(error) {
  const faults = faultsIn(error);
  if (faults.length) return countOf(faults);
  return error.status === 0 ? UNREACHED : error.message;
}

/**
 * What has changed, as the API takes it.
 * @param {Subject} subject
 * @param {State} state
 */
export function changesOf({ model, type }, { base, values }) {
  const changes = changedNames(base, values).map((name) => {
    return [name, sentValue(model, type.attributes[name], base[name], values[name])];
  });
  return Object.fromEntries(changes);
}
