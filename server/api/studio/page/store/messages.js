/** The store of messages: successes, errors, and changes that can be undone. Each message has a place on the page. */

import { useEffect, useState } from "../vendor/preact.js";

/**
 * @typedef {object} Message
 * @property {string} text  The text, or "" for no message.
 * @property {boolean} [isError]
 * @property {string[]} [undo]  The ids with which the parts of the change can be undone, in order. It is empty if the
 *   change can't be undone.
 * @property {() => void} [undone]  Called after the change was undone, instead of loading content again.
 */

/** Places that exist only once. Other places are named by the id of the element to which they belong. */
export const BRANCHES = "branches";
export const BULK = "bulk";
export const FORM = "form";
export const PAGE = "page";
export const PEOPLE = "people";
export const ROLE = "role";
export const SETTINGS = "settings";
export const SIGN_IN = "sign-in";
export const UNDO = "undo";
export const WEBHOOKS = "webhooks";

/** @type {Message} */
const NONE = { text: "" };
/** @type {Map<string, Message>} */
const messages = new Map();
/** @type {Set<() => void>} */
const listeners = new Set();

/** Return the message at a place. @param {string} place */
export const messageAt = (place) => messages.get(place) ?? NONE;

/** Show a success message, or "" to remove the message. @param {string} place @param {string} text */
export const showNotice = (place, text) => show(place, { text });

/** @param {string} place @param {string} text */
export const showError = (place, text) => show(place, { text, isError: true });

/** @param {string} place */
export const clearMessage = (place) => show(place, NONE);

/**
 * Show what was changed, with a button to undo it.
 * @param {string} text
 * @param {string[]} undo
 * @param {() => void} [undone]
 */
export const offerUndo = (text, undo, undone) => show(UNDO, { text, undo, undone });

/** @param {string} place @param {Message} message */
function show(place, message) {
  if (message.text === "" && !messages.has(place)) return;
  if (message.text === "") messages.delete(place);
  else messages.set(place, message);
  for (const listener of [...listeners]) listener();
}

/**
 * Return the message at a place. When the component is removed, the message is deleted.
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
