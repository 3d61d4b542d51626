/**
 * Presence: reports the user's position while a document is open, and shows who else is there. The server stores this
 * in memory only.
 */

import { ApiError, ask } from "../api.js";
import { useCallback, useEffect, useRef, useState } from "../vendor/preact.js";

const AGAIN_MS = 10_000; // until it is said again; the server forgets it after 30 s
const REST_MS = 250; // how long the focus rests in a field before that is said
const CLIENT = Array.from(crypto.getRandomValues(new Uint8Array(12)), (byte) => byte.toString(36)).join("");

/**
 * @typedef {object} Person
 * @property {"user" | "token" | "owner"} kind
 * @property {string} name
 * @property {{locale: string, field: string | null}[]} at  The person's positions in the document.
 */

/**
 * Return whether the user may see who has opened the documents of a content type.
 * @param {import("../model.js").Model} model
 * @param {import("../model.js").Type} type
 */
export function attends(model, type) {
  const works = ["update", "readDraft", "updateDraft"].some((action) => model.may(type, action));
  return model.isServed && works && model.may(type, "find");
}

/**
 * Report that the user is in the document while the tab is shown.
 *
 * Returns the other people, the field that the user is in, and a function to call with the server's information about
 * others.
 * @param {import("../documents/form.js").Subject} subject
 * @param {boolean} there  Whether the document exists.
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

/** Return the path of the focused field, or null if there is none. @param {boolean} active */
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

/** Report that the user has left the document. This also works while the page is being closed. */
function leave() {
  ask(`presence/${CLIENT}`, { method: "DELETE", keepalive: true }).catch(() => undefined);
}
