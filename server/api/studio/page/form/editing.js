/** The state of a form: what was read, what was typed, what is wrong, and what the buttons do to it. */

import { ApiError } from "../api.js";
import { useCallback, useEffect, useRef, useState } from "../vendor/preact.js";
import { localeParam, localesOf, startOf, startOfLocale, valuesOf } from "./beginning.js";
import { readDocument } from "./reading.js";
import { faultsIn, faultsOf } from "./rules.js";
import { keepKeys, sentValue } from "./shape.js";
import { changedNames, pick, rebase } from "./values.js";
import { create, publish, write } from "./writing.js";

/** @typedef {import("./values.js").Values} Values */

/**
 * @typedef {object} Subject  What is edited.
 * @property {import("../model.js").Model} model
 * @property {import("../model.js").Type} type
 * @property {string} id  "" for a document that is not there yet.
 * @property {string} locale
 * @property {boolean} drafts  Whether it is a draft that is edited, and published by itself.
 * @property {string} from  The document that a new one begins as a copy of, "" for none.
 */

/**
 * @typedef {object} State
 * @property {"loading" | "ready" | "failed"} phase
 * @property {any} [failure]
 * @property {import("./reading.js").Version} [version]
 * @property {string[]} others  The other locales that it has.
 * @property {Values} base
 * @property {Values} values
 * @property {Values} theirs  See `rebase`.
 * @property {Record<string, string>} errors  By the paths of attributes, joined with dots.
 * @property {number} refused  How often something was found to be wrong: then the first such field is shown.
 * @property {"" | "saving" | "publishing"} busy
 * @property {{text: string, wrong?: boolean}} told
 */

/** @type {State} */
const LOADING = {
  phase: "loading",
  others: [],
  base: {},
  values: {},
  theirs: {},
  errors: {},
  refused: 0,
  busy: "",
  told: { text: "" },
};
const SEEN_FIRST = "Saved. Somebody else has changed it as well: look at it, then publish.";
const CHOOSE = "Somebody else has changed the same. Choose what is to stay, then save.";

/**
 * @param {Subject} subject
 * @param {(id: string) => void} done  Called with the id of what was written.
 */
export function useEditing(subject, done) {
  const { model, type, id } = subject;
  const [state, set] = useState(LOADING);
  const now = useRef(state);
  now.current = state;
  const update = useCallback((/** @type {Partial<State>} */ part) => {
    now.current = { ...now.current, ...part };
    set(now.current);
  }, []);

  const load = useCallback(async () => {
    try {
      if (!id) return update({ phase: "ready", values: await startOf(subject) });
      const version = await readDocument(model, type, id, localeParam(subject));
      const values = valuesOf(model, type, version.document);
      update({ ...LOADING, phase: "ready", others: localesOf(version.document), version, base: values, values });
    } catch (failure) {
      if (type.localized && id && failure instanceof ApiError && failure.status === 404) {
        return startOfLocale(subject).then(
          (start) => update({ ...LOADING, phase: "ready", ...start }),
          (missing) => update({ phase: "failed", failure: missing }),
        );
      }
      update({ phase: "failed", failure });
    }
  }, [subject]);
  useEffect(() => void load(), [load]);

  const change = useCallback((/** @type {string} */ name, /** @type {any} */ value) => {
    const { values, errors } = now.current;
    const left = Object.entries(errors).filter(([path]) => path !== name && !path.startsWith(`${name}.`));
    update({ values: { ...values, [name]: value }, errors: Object.fromEntries(left), told: { text: "" } });
  }, []);

  const choose = useCallback((/** @type {string} */ name, /** @type {boolean} */ mine) => {
    const { values, theirs } = now.current;
    const { [name]: other, ...rest } = theirs;
    update({ theirs: rest, values: mine ? values : { ...values, [name]: other }, told: { text: "" } });
  }, []);

  const send = useCallback(
    (/** @type {boolean} */ publishes) => save({ subject, now, update, done }, publishes),
    [subject, done],
  );
  const hear = useCallback(() => listen({ subject, now, update, done }), [subject, done]);
  return { state, update, load, change, choose, send, hear };
}

/**
 * @typedef {object} Work
 * @property {Subject} subject
 * @property {{current: State}} now
 * @property {(part: Partial<State>) => void} update
 * @property {(id: string) => void} done
 */

/**
 * Save what has changed, and publish it where that is wanted.
 * @param {Work} work
 * @param {boolean} publishes
 */
async function save(work, publishes) {
  const { subject, now, update, done } = work;
  const state = now.current;
  if (state.busy || state.phase !== "ready") return;
  if (Object.keys(state.theirs).length) return refuse(work, [], CHOOSE);
  const faults = faultsToTell(subject, state, publishes);
  if (faults.length) return refuse(work, faults, countOf(faults));
  update({ busy: publishes ? "publishing" : "saving", errors: {}, told: { text: "" } });
  try {
    const id = subject.id ? await saveThere(work, publishes) : await saveNew(work, publishes);
    if (id) done(id);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    refuse(work, faultsIn(error), wordsOf(error));
  } finally {
    update({ busy: "" });
  }
}

/**
 * Show what others have written: what was not touched here at once, what was beside what was typed.
 * @param {Work} work
 */
async function listen(work) {
  const { now } = work;
  if (now.current.busy || now.current.phase !== "ready" || !now.current.version) return;
  try {
    await readAgain(work, now.current.base);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error; // It is gone, or the network is: saving says so.
  }
}

/** @param {Work} work @param {boolean} publishes */
async function saveNew({ subject, now, update }, publishes) {
  const { values } = now.current;
  const address = { ...subject, locale: localeParam(subject), draft: subject.drafts && !publishes };
  const id = await create(address, changesOf(subject, now.current));
  update({ base: values, told: { text: publishes || !subject.drafts ? "Saved" : "Saved as a draft" } });
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
    update({ told: { text: "There is nothing to save" } });
    return "";
  }
  if (mine.length && !(await writeMerged(work))) return "";
  const others = Object.keys(before).filter((name) => !mine.includes(name));
  const { version } = now.current;
  if (!publishes || !drafts) {
    update({ told: { text: !drafts ? "Saved" : "Saved as a draft" } });
    return subject.id;
  }
  if (changedNames(pick(before, others), pick(now.current.base, others)).length) {
    update({ told: { text: SEEN_FIRST } });
    return subject.id;
  }
  await publish({ type, id: subject.id, locale: localeParam(subject), draft: true }, version?.etag ?? "");
  await readAgain(work, now.current.values);
  update({ told: { text: "Published" } });
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
      update({ told: { text: CHOOSE, wrong: true } });
      return false;
    }
  }
}

/**
 * Read the document again, and put on top what was typed since it had some values.
 * @param {Work} work
 * @param {Values} since
 */
export async function readAgain({ subject, now, update }, since) {
  const { model, type, id } = subject;
  const version = await readDocument(model, type, id, localeParam(subject));
  const { values, theirs } = now.current;
  const fresh = valuesOf(model, type, version.document);
  for (const name of Object.keys(fresh)) fresh[name] = keepKeys(type.attributes[name], values[name], fresh[name]);
  update({ version, others: localesOf(version.document), ...rebase(since, values, fresh, theirs) });
}

/** @param {Work} work @param {import("./rules.js").Fault[]} faults @param {string} text */
function refuse({ now, update }, faults, text) {
  const errors = Object.fromEntries(faults.map(({ path, message }) => [path.join("."), message]));
  update({ errors, refused: now.current.refused + 1, told: { text, wrong: true } });
}

/** @param {Subject} subject @param {State} state @param {boolean} publishes */
function faultsToTell({ model, type, id, drafts }, { base, values }, publishes) {
  const named = type.drafts ? [] : changedNames(base, values);
  const faults = faultsOf(model, type.attributes, values, { draft: drafts && !publishes, isNew: !id });
  return type.drafts || !id ? faults : faults.filter(({ path }) => named.includes(path[0]));
}

/** @param {any[]} faults */
const countOf = ({ length }) => (length === 1 ? "One field is not right yet" : `${length} fields are not right yet`);

/** @param {ApiError} error */
function wordsOf(error) {
  const faults = faultsIn(error);
  if (faults.length) return countOf(faults);
  return error.status === 0 ? `${error.message}. What you have typed is kept here.` : error.message;
}

/**
 * What has changed, as the API takes it.
 * @param {Subject} subject
 * @param {State} state
 */
function changesOf({ model, type }, { base, values }) {
  const changes = changedNames(base, values).map((name) => {
    return [name, sentValue(model, type.attributes[name], base[name], values[name])];
  });
  return Object.fromEntries(changes);
}
