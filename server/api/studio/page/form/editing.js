/** The state of a form: the values that were read and typed, the errors, and the functions of the buttons. */

import { useBack } from "../connection/connection.js";
import { FORM, clearMessage, messageAt } from "../store/messages.js";
import { useCallback, useEffect, useRef, useState } from "../vendor/preact.js";
import { listen, readLatest, show } from "./latest.js";
import { valuesOf } from "./resource.js";
import { UNREACHED, save } from "./saving.js";

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

  const load = useCallback(async () => {
    try {
      if (!resource.id) return update({ phase: "ready", ...(await resource.begin()) });
      const version = await readLatest({ resource, reads });
      if (!version) return;
      const isMade = now.current.phase === "ready" && !now.current.version; // here, and more may be typed already
      if (isMade) return show({ resource, now, update, done, reads }, version, now.current.base);
      const values = valuesOf(resource, version.document);
      const others = resource.localesOf(version.document);
      update({ ...LOADING, phase: "ready", others, version, base: values, values });
    } catch (failure) {
      const start = resource.beginInstead(failure);
      if (start) {
        return start.then(
          (begun) => update({ ...LOADING, phase: "ready", ...begun }),
          (missing) => update({ phase: "failed", failure: missing }),
        );
      }
      update({ phase: "failed", failure });
    }
  }, [resource]);
  useEffect(() => void load(), [load]);

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
    (/** @type {boolean} */ publishes) => save({ resource, now, update, done, reads }, publishes),
    [resource, done],
  );
  const hear = useCallback(
    (/** @type {boolean} */ unsure = false) => listen({ resource, now, update, done, reads }, unsure),
    [resource, done],
  );
  return { state, update, load, change, choose, send, hear };
}
