/** The functions of a form's buttons: save the changes, merged with changes by others, and publish the document. */

import { ApiError } from "../api.js";
import { plural, t } from "../language.js";
import { FORM, clearMessage, showError, showNotice } from "../store/messages.js";
import { listen, readAgain } from "./latest.js";
import { faultsIn, faultsOf } from "./rules.js";
import { sentValue } from "./shape.js";
import { forget } from "./unsaved.js";
import { changedNames, pick } from "./values.js";

/**
 * @typedef {import("./editing.js").State} State
 * @typedef {import("./resource.js").FormResource} FormResource
 * @typedef {import("./latest.js").Work} Work
 */

const CHANGED_BY_OTHERS = t`Saved. Someone else changed this document too: review it before you publish.`;
export const UNREACHED = t`The server can't be reached. Your changes are kept in this page.`;
const OUTDATED = t`The content type has changed meanwhile. Check the form, then save again.`;
const CHOOSE = t`Someone else changed the same fields. Choose which values to keep, then save.`;

/** How the server answers a save of attributes or of a content type that it no longer has. */
const MAY_BE_OUTDATED = [400, 404, 405];

/**
 * Save the changes, and publish the document if this is requested.
 * @param {Work} work
 * @param {boolean} publishes
 */
export async function save(work, publishes) {
  const { resource, now, update, done } = work;
  const state = now.current;
  if (state.busy || state.phase !== "ready") return;
  if (Object.keys(state.theirs).length) return refuse(work, [], CHOOSE);
  const faults = faultsBefore(resource, state, publishes);
  if (faults.length) return refuse(work, faults, countOf(faults));
  update({ busy: publishes ? "publishing" : "saving", errors: {} });
  clearMessage(FORM);
  try {
    const id = resource.id ? await saveThere(work, publishes) : await saveNew(work, publishes);
    if (id) done(id);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    if (MAY_BE_OUTDATED.includes(error.status) && (await resource.renew())) return refuse(work, [], OUTDATED);
    refuse(work, faultsIn(error), wordsOf(error));
  } finally {
    update({ busy: "" });
    if (work.reads.current.missed) listen(work);
  }
}

/** @param {Work} work @param {boolean} publishes */
async function saveNew({ resource, now, update }, publishes) {
  const { values } = now.current;
  const id = await resource.create(changesOf(resource, now.current), publishes);
  forget(resource.placeOfNew); // What is typed from now on belongs to the document.
  update({ base: values });
  showNotice(FORM, publishes || !resource.isStaged ? t`Saved` : t`Saved as a draft`);
  return id;
}

/**
 * Save an existing document. Resolves to its id, or to "" if the user must first choose between conflicting values.
 * @param {Work} work
 * @param {boolean} publishes
 */
async function saveThere(work, publishes) {
  const { resource, now } = work;
  const { id, isStaged } = resource;
  const before = now.current.base;
  const mine = changedNames(before, now.current.values);
  if (!mine.length && (!publishes || !now.current.version)) {
    showNotice(FORM, t`No changes to save`);
    return "";
  }
  if (mine.length && !(await writeMerged(work))) return "";
  const others = Object.keys(before).filter((name) => !mine.includes(name));
  const { version } = now.current;
  if (!publishes || !isStaged) {
    showNotice(FORM, isStaged ? t`Saved as a draft` : t`Saved`);
    return id;
  }
  if (changedNames(pick(before, others), pick(now.current.base, others)).length) {
    showNotice(FORM, CHANGED_BY_OTHERS);
    return id;
  }
  await resource.publish(version?.etag ?? "");
  await readAgain(work, now.current.values);
  showNotice(FORM, t`Published`);
  return id;
}

/**
 * Write the changes, merged with changes by others. Resolves to false if others have changed the same attributes.
 * @param {Work} work
 */
async function writeMerged(work) {
  const { resource, now } = work;
  for (let tries = 0; ; tries++) {
    const { values, version } = now.current;
    try {
      await resource.write(changesOf(resource, now.current), version?.etag ?? "");
      await readAgain(work, values);
      return true;
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 412 || tries > 2) throw error;
      if (await resource.renew()) throw new ApiError(409, OUTDATED);
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

/** @param {FormResource} resource @param {State} state @param {boolean} publishes */
function faultsBefore({ model, attributes, isStaged, checksAll }, { base, values }, publishes) {
  const faults = faultsOf(model, attributes, values, { draft: isStaged && !publishes });
  const edited = changedNames(base, values);
  return checksAll ? faults : faults.filter(({ path }) => edited.includes(path[0]));
}

/** @param {any[]} faults */
const countOf = ({ length }) => {
  return plural(length, { one: "One field is invalid", other: "{0} fields are invalid" });
};

/** @param {ApiError} error */
function wordsOf(error) {
  const faults = faultsIn(error);
  if (faults.length) return countOf(faults);
  return error.status === 0 ? UNREACHED : error.message;
}

/**
 * Return the changed values in the form that the API accepts.
 * @param {Pick<FormResource, "model" | "attributes">} resource
 * @param {State} state
 */
export function changesOf({ model, attributes }, { base, values }) {
  const names = changedNames(base, values).filter((name) => name in attributes);
  const changes = names.map((name) => {
    return [name, sentValue(model, attributes[name], base[name], values[name])];
  });
  return Object.fromEntries(changes);
}
