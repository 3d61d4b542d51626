/**
 * The changes of content types that can still be undone. The browser remembers them, because only the response to a
 * change contains the id with which it can be undone.
 */

import { ApiError } from "../api.js";
import { SITE } from "../base.js";
import { t } from "../language.js";
import { offerUndo } from "../store/messages.js";
import { ago } from "../text.js";
import { undoAll } from "../undo/undo.js";
import { html, useState } from "../vendor/preact.js";

const KEPT_MS = 60 * 60_000; // The server keeps the files of a change for this long.

/**
 * @typedef {import("../model.js").Model} Model
 * @typedef {{id: string, text: string, at: number}} OpenUndo
 */

/** @param {Model} model */
const keyOf = ({ caller }) => `bifolio undo ${SITE.pathname} ${caller.kind} ${caller.name}`;

/** Return the changes that the user can still undo, the latest first. @param {Model} model @returns {OpenUndo[]} */
export function openUndos(model) {
  try {
    /** @type {OpenUndo[]} */
    const stored = JSON.parse(localStorage.getItem(keyOf(model)) ?? "[]");
    return stored.filter(({ at }) => Date.now() - at < KEPT_MS);
  } catch {
    return [];
  }
}

/** @param {Model} model @param {OpenUndo[]} undos */
function keep(model, undos) {
  try {
    localStorage.setItem(keyOf(model), JSON.stringify(undos));
  } catch {
    // Without storage, only the bar offers to undo a change.
  }
}

/** Remember a change. @param {Model} model @param {string} id @param {string} text */
export const noteUndo = (model, id, text) => keep(model, [{ id, text, at: Date.now() }, ...openUndos(model)]);

/** Forget a change that was undone. @param {Model} model @param {string} id */
export const forgetUndo = (model, id) => keep(model, openUndos(model).filter((undo) => undo.id !== id));

/**
 * The list of changes that can still be undone.
 * @param {{model: Model, undone: () => Promise<void>}} props
 */
export function OpenUndos({ model, undone }) {
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
  const undos = openUndos(model);
  const undo = async (/** @type {string} */ id) => {
    setBusy(true);
    setProblem("");
    try {
      await undoAll([id]);
      forgetUndo(model, id);
      offerUndo(t`Undone`, []);
      await undone();
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (error.status === 404) forgetUndo(model, id);
      setProblem(error.message);
    }
    setBusy(false);
  };
  return html`<section aria-labelledby="types-undos" class="types-schema" hidden=${!undos.length && !problem}>
    <h2 id="types-undos">${t`Changes of the last hour`}</h2>
    <p class="field-error" role="alert">${problem}</p>
    <ul class="types-list">${undos.map(({ id, text, at }) => html`<li key=${id} class="types-row">
      <span>${text}</span> <span class="hint">${ago(new Date(at).toISOString())}</span>
      <button class="button" type="button" disabled=${busy} aria-label=${t`Undo: ${text}`}
        onClick=${() => undo(id)}>${t`Undo`}</button></li>`)}</ul>
  </section>`;
}
