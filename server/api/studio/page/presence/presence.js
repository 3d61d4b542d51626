/** Says where one is while a document is open, and learns who else is there; the server keeps it in memory alone. */

import { ApiError, ask } from "../api.js";
import { useCallback, useEffect, useRef, useState } from "../vendor/preact.js";

const AGAIN_MS = 10_000; // until it is said again; the server forgets it after 30 s
const REST_MS = 250; // how long the focus rests in a field before that is said
const CLIENT = Array.from(crypto.getRandomValues(new Uint8Array(12)), (byte) => byte.toString(36)).join("");

/**
 * @typedef {object} Person
 * @property {"user" | "token" | "owner"} kind
 * @property {string} name
 * @property {{locale: string, field: string | null}[]} at  Where in the document.
 */

/**
 * Whether one is told who else is at the documents of a type.
 * @param {import("../model.js").Model} model
 * @param {import("../model.js").Type} type
 */
export function attends(model, type) {
  const works = ["update", "readDraft", "updateDraft"].some((action) => model.may(type, action));
  return model.isServed && works && model.may(type, "find");
}

/**
 * Be at a document while the tab is shown; returns who else is, the field that one is in oneself, and what is to
 * be called with what the server tells of others.
 * @param {import("../documents/form.js").Subject} subject
 * @param {boolean} there  Whether the document is.
 */
export function usePresence({ model, type, id, locale }, there) {
  const [people, setPeople] = useState(/** @type {Person[]} */ ([]));
  const hear = useCallback((/** @type {any} */ told) => told.documentId === id && setPeople(told.people), [id]);
  const active = there && id !== "" && attends(model, type);
  const field = useFocusedField(active);
  const now = useRef(field);
  now.current = field;
  const say = useCallback(async () => {
    if (document.hidden) return;
    const place = { type: type.name, documentId: id, locale, field: now.current };
    try {
      hear((await ask(`presence/${CLIENT}`, { method: "PUT", body: place })).data);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error; // It is said again soon.
    }
  }, [type, id, locale, hear]);

  useEffect(() => {
    if (!active) return;
    const timer = setInterval(say, AGAIN_MS);
    const shown = () => (document.hidden ? leave() : void say());
    document.addEventListener("visibilitychange", shown);
    addEventListener("pagehide", leave);
    return () => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", shown);
      removeEventListener("pagehide", leave);
      leave();
    };
  }, [active, say]);
  useEffect(() => {
    if (!active) return;
    const timer = setTimeout(say, REST_MS);
    return () => clearTimeout(timer);
  }, [active, say, field]);
  return { people, field, hear: active ? hear : undefined };
}

/** The path of the field that has the focus, null for none. @param {boolean} active */
function useFocusedField(active) {
  const [field, set] = useState(/** @type {string | null} */ (null));
  useEffect(() => {
    if (!active) return;
    const look = () => {
      const found = /** @type {HTMLElement | null} */ (document.activeElement?.closest(".fields [data-field]"));
      set(found?.dataset.field ?? null);
    };
    const left = () => setTimeout(look); // The next element has the focus only then.
    look();
    document.addEventListener("focusin", look);
    document.addEventListener("focusout", left);
    return () => {
      document.removeEventListener("focusin", look);
      document.removeEventListener("focusout", left);
    };
  }, [active]);
  return field;
}

/** Say that one has left, also while the page is closed. */
function leave() {
  ask(`presence/${CLIENT}`, { method: "DELETE", keepalive: true }).catch(() => undefined);
}
