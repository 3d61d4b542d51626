/** The store of messages: what was done, what went wrong, and what can be undone, each at its place on the page. */

import { useEffect, useState } from "../vendor/preact.js";

/**
 * @typedef {object} Message
 * @property {string} text  "" for none.
 * @property {boolean} [isError]
 * @property {string[]} [undo]  The ids to undo what was done, in the order of its parts; none if it can't be undone.
 */

/** Places of which there is one. Others are named by the id of what they belong to. */
export const BULK = "bulk";
export const FORM = "form";
export const PAGE = "page";
export const SIGN_IN = "sign-in";
export const UNDO = "undo";

/** @type {Message} */
const NONE = { text: "" };
/** @type {Map<string, Message>} */
const messages = new Map();
/** @type {Set<() => void>} */
const listeners = new Set();

/** The message at a place. @param {string} place */
export const messageAt = (place) => messages.get(place) ?? NONE;

/** Show that something was done, or "" for nothing. @param {string} place @param {string} text */
export const showNotice = (place, text) => show(place, { text });

/** Show what went wrong. @param {string} place @param {string} text */
export const showError = (place, text) => show(place, { text, isError: true });

/** @param {string} place */
export const clearMessage = (place) => show(place, NONE);

/**
 * Say what was done, and offer to undo it.
 * @param {string} text
 * @param {string[]} undo
 */
export const offerUndo = (text, undo) => show(UNDO, { text, undo });

/** @param {string} place @param {Message} message */
function show(place, message) {
  if (message.text === "" && !messages.has(place)) return;
  if (message.text === "") messages.delete(place);
  else messages.set(place, message);
  for (const listener of [...listeners]) listener();
}

/**
 * The message at a place, while a component shows it; without that component, it is gone.
 * @param {string} place
 * @returns {Message}
 */
export function useMessage(place) {
  const [message, set] = useState(() => messageAt(place));
  useEffect(() => {
    const listener = () => set(messageAt(place));
    listeners.add(listener);
    listener();
    return () => {
      listeners.delete(listener);
      clearMessage(place);
    };
  }, [place]);
  return message;
}
