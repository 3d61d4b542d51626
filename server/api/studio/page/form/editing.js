/** The state of a form: the values that were read and typed, the errors, and the functions of the buttons. */

import { useBack } from "../connection/connection.js";
import { FORM, clearMessage, messageAt } from "../store/messages.js";
import { useCallback, useEffect, useRef, useState } from "../vendor/preact.js";
import { listen, merge, readLatest, show } from "./latest.js";
import { valuesOf } from "./resource.js";
import { UNREACHED, save } from "./saving.js";
import { lostAt } from "./unsaved.js";

/** @typedef {import("./values.js").Values} Values */

/** @typedef {import("./resource.js").FormResource} FormResource */

/**
 * @typedef {object} State
 * @property {"loading" | "ready" | "failed"} phase
 * @property {any} [failure]
 * @property {import("./resource.js").Version} [version]
 * @property {string[]} others  The other locales in which the document exists.
 * @property {Values} base
 * @property {Values} values
 * @property {Values} theirs  See `rebase`.
 * @property {Values} lost  The typed values of attributes that no longer exist.
 * @property {Record<string, string>} errors  Error messages by the path of the attribute, joined with dots.
 * @property {number} refused  How often errors were found. After each time, the first field with an error is shown.
 * @property {"" | "saving" | "publishing"} busy
 */

/** @type {State} */
const LOADING = {
  phase: "loading",
  others: [],
  base: {},
  values: {},
  theirs: {},
  lost: {},
  errors: {},
  refused: 0,
  busy: "",
};

/**
 * @param {FormResource} resource
 * @param {(id: string) => void} done  Called with the id of the saved document.
 */
export function useEditing(resource, done) {
  const [state, set] = useState(LOADING);
  const now = useRef(state);
  now.current = state;
  const update = useCallback((/** @type {Partial<State>} */ part) => {
    now.current = { ...now.current, ...part };
    set(now.current);
  }, []);
  const reads = useRef({ begun: 0, newest: 0, missed: false });
  const current = useRef(resource);
  current.current = resource;
  const isCurrent = () => current.current === resource;

  /** Read the document. `keeps`: what was typed stays, because the document was just made, or its type has changed. */
  const read = useCallback(async (/** @type {boolean} */ keeps) => {
    const work = { resource, now, update, done, reads, isCurrent };
    /** @param {import("./resource.js").Start} start */
    const begin = (start) => {
      if (keeps && now.current.phase === "ready") return merge(work, start.base, now.current.base);
      update({ ...LOADING, phase: "ready", lost: lostAt(resource.place, resource.attributes), ...start });
    };
    try {
      if (!resource.id) return begin(await resource.begin());
      const version = await readLatest(work);
      if (!version) return;
      if (keeps && now.current.phase === "ready") return show(work, version, now.current.base);
      const values = valuesOf(resource, version.document);
      const others = resource.localesOf(version.document);
      begin({ others, base: values, values });
      update({ version });
    } catch (failure) {
      const start = resource.beginInstead(failure);
      if (start) return start.then(begin, (missing) => update({ phase: "failed", failure: missing }));
      if (keeps && now.current.phase === "ready") return; // Saving says so.
      update({ phase: "failed", failure });
    }
  }, [resource]);
  const load = useCallback(() => read(false), [read]);
  useEffect(() => void read(true), [read]);

  useBack(() => messageAt(FORM).text === UNREACHED && clearMessage(FORM));

  const change = useCallback((/** @type {string} */ name, /** @type {any} */ value) => {
    const { values, errors } = now.current;
    const left = Object.entries(errors).filter(([path]) => path !== name && !path.startsWith(`${name}.`));
    update({ values: { ...values, [name]: value }, errors: Object.fromEntries(left) });
    clearMessage(FORM);
  }, []);

  const choose = useCallback((/** @type {string} */ name, /** @type {boolean} */ mine) => {
    const { values, theirs } = now.current;
    const { [name]: other, ...rest } = theirs;
    update({ theirs: rest, values: mine ? values : { ...values, [name]: other } });
    clearMessage(FORM);
  }, []);

  const send = useCallback(
    (/** @type {boolean} */ publishes) => save({ resource, now, update, done, reads, isCurrent }, publishes),
    [resource, done],
  );
  const hear = useCallback(
    (/** @type {boolean} */ unsure = false) => listen({ resource, now, update, done, reads, isCurrent }, unsure),
    [resource, done],
  );
  return { state, update, load, change, choose, send, hear };
}
