/**
 * Updates a form with the latest version of its document, after a save and whenever others have changed the document.
 */

import { ApiError } from "../api.js";
import { FORM, clearMessage, messageAt } from "../store/messages.js";
import { valuesOf } from "./resource.js";
import { lacksInside, lostInside, reshaped } from "./reshape.js";
import { keepKeys } from "./shape.js";
import { isSecret } from "./unsaved.js";
import { changedNames, rebase } from "./values.js";

/**
 * @typedef {import("./editing.js").State} State
 * @typedef {import("./values.js").Values} Values
 */

/**
 * @typedef {object} Work  A form, with the data that functions outside its component need.
 * @property {import("./resource.js").FormResource} resource
 * @property {{current: State}} now
 * @property {(part: Partial<State>) => void} update
 * @property {(id: string) => void} done
 * @property {() => boolean} isCurrent  Whether the form still has this resource. A changed content type replaces it.
 * @property {{current: {begun: number, newest: number, missed: boolean}}} reads  The number of reads that were started,
 *   the number of the latest read that has ended, and whether an event was missed during a save.
 */

/**
 * Show changes by others. Attributes that the user has not edited are updated. For others, the new value is shown next
 * to the typed value. During a save, this is postponed, because the save also updates the form.
 * @param {Work} work
 * @param {boolean} [unsure]  Whether it is not known that anything has changed. If nothing has, the form stays as it
 *   is.
 */
export async function listen(work, unsure = false) {
  const { now, reads } = work;
  if (now.current.phase !== "ready" || !now.current.version || !work.isCurrent()) return;
  reads.current.missed = Boolean(now.current.busy);
  if (now.current.busy) return;
  try {
    const version = await readLatest(work);
    const { version: before, busy } = now.current;
    reads.current.missed ||= Boolean(busy);
    if (!version || busy) return;
    if (isOutdated(work, version) && (await work.resource.renew())) return; // The event may have been missed.
    if (!work.isCurrent()) return;
    const same = version.etag === before?.etag && version.publishedEtag === before?.publishedEtag;
    if (same && unsure) return;
    show(work, version, now.current.base);
    if (!same && !messageAt(FORM).isError) clearMessage(FORM); // It was about the version before.
  } catch (error) {
    if (!(error instanceof ApiError)) throw error; // It is gone, or the network is: saving says so.
  }
}

/**
 * Return whether a version lacks an attribute that the user has changed, or an attribute in a changed component.
 * @param {Work} work
 * @param {import("./resource.js").Version} version
 */
function isOutdated({ resource, now }, { document }) {
  const { base, values } = now.current;
  const names = changedNames(base, values).filter((name) => !isSecret(resource.place, name));
  return names.some((name) => !(name in document)) || lacksInside(resource, names, document);
}

/**
 * Read the document again, and then apply what was typed since the attributes had the given values.
 * @param {Work} work
 * @param {Values} since
 */
export async function readAgain(work, since) {
  const version = await readLatest(work);
  if (version) show(work, version, since);
}

/**
 * Read the document. Resolves to null if a read that was started later has already ended, because its result is newer.
 * @param {Pick<Work, "resource" | "reads">} work
 */
export async function readLatest({ resource, reads }) {
  const number = ++reads.current.begun;
  const version = await resource.read();
  if (number < reads.current.newest) return null;
  reads.current.newest = number;
  return version;
}

/**
 * Show a version of the document, and then apply what was typed since the attributes had the given values.
 * @param {Work} work
 * @param {import("./resource.js").Version} version
 * @param {Values} since
 */
export function show(work, version, since) {
  const { resource, now, update } = work;
  const { values } = now.current;
  const fresh = valuesOf(resource, version.document);
  for (const name of Object.keys(fresh)) fresh[name] = keepKeys(resource.attributes[name], values[name], fresh[name]);
  update({ version, others: resource.localesOf(version.document) });
  merge(work, fresh, since);
}

/**
 * Show other values, and then apply what was typed since the attributes had the given values. If a content type or
 * component has lost an attribute, its typed value is in `lost`, and goes back to an attribute of the content type if
 * this is added again.
 * @param {Work} work
 * @param {Values} fresh
 * @param {Values} since
 */
export function merge({ resource, now, update }, fresh, since) {
  const { values, theirs, lost } = now.current;
  const [base, typed] = [since, values].map((one) => reshaped(resource, one, fresh));
  const merged = rebase(base, { ...lost, ...typed }, fresh, theirs);
  for (const name of Object.keys(merged.lost)) if (isSecret(resource.place, name)) delete merged.lost[name];
  Object.assign(merged.lost, lostInside(resource, since, values));
  update(merged);
}
