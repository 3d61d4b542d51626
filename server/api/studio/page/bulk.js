/** What can be done with the documents that are selected in a list: all or none, at once, and undone at once. */

import { ask } from "./api.js";
import { pathOf } from "./form/reading.js";
import { counted, titleOf } from "./text.js";
import { UNDOABLE } from "./undo/undo.js";
import { BULK, clearMessage, offerUndo, showError, useMessage } from "./store/messages.js";
import { html, useEffect, useState } from "./vendor/preact.js";

/**
 * @typedef {import("./model.js").Type} Type
 * @typedef {import("./documents.js").Row} Row
 * @typedef {"publish" | "unpublish" | "delete"} Action
 * @typedef {{label: string, done: string, right: "publish" | "remove", concerns: (row: Row) => boolean}} Described
 */

/** @type {Record<Action, Described>} */
const ACTIONS = {
  publish: { label: "Publish", done: "published", right: "publish", concerns: (row) => row.status !== "published" },
  unpublish: { label: "Unpublish", done: "unpublished", right: "publish", concerns: (row) => row.status !== "draft" },
  delete: { label: "Delete", done: "deleted", right: "remove", concerns: () => true },
};
const MOST = 50; // documents in one batch, which takes 100 operations, two of them to publish one
const NO_VALUE = ["relation", "media", "component", "dynamiczone"];

/**
 * The bar with what can be done. Nobody is asked before: the bar below offers to undo it.
 * @param {{type: Type, rows: Row[], rights: import("./form/rights.js").Rights, locale: string,
 *   done: (action: Action) => void, clear: () => void}} props
 */
export function BulkBar({ type, rows, rights, locale, done, clear }) {
  const [busy, setBusy] = useState(false);
  const message = useMessage(BULK);
  useEffect(() => clearMessage(BULK), [rows.length]);
  /** @param {Action} action */
  const act = async (action) => {
    const documents = rows.filter(ACTIONS[action].concerns);
    setBusy(true);
    clearMessage(BULK);
    try {
      const ids = await send(type, documents, action, locale);
      offerUndo(`${countOf(documents)} ${ACTIONS[action].done}`, ids);
      done(action);
    } catch (/** @type {any} */ refused) {
      const subject = refused.about ? `${titleOf(type, refused.about)}: ` : "";
      showError(BULK, `${subject}${refused.message}. Nothing was changed.`);
    } finally {
      setBusy(false);
    }
  };
  const offered = /** @type {Action[]} */ (Object.keys(ACTIONS)).filter((action) => {
    return rights[ACTIONS[action].right] && rows.some(ACTIONS[action].concerns);
  });
  return html`<div class=${`bulk ${rows.length ? "is-shown" : ""}`} role="region" aria-label="Selected documents">
    <span role="status">${rows.length ? `${counted(rows.length)} selected` : ""}</span>
    ${rows.length > 0 && html`<span class="bulk-actions">
      ${offered.map((action) => html`<button class="button" type="button" key=${action} disabled=${busy}
        onClick=${() => act(action)}>
        ${ACTIONS[action].label} ${counted(rows.filter(ACTIONS[action].concerns).length)}
      </button>`)}
      <button class="button" type="button" onClick=${clear}>Select none</button>
    </span>`}
    ${message.text && html`<p class="field-error bulk-error" role="alert">${message.text}</p>`}
  </div>`;
}

/** @param {Row[]} rows */
const countOf = (rows) => `${counted(rows.length)} ${rows.length === 1 ? "document" : "documents"}`;

/**
 * Do it; returns the ids to undo it by. Throws ApiError, with the document that it is `about`, where nothing was done.
 * @param {Type} type
 * @param {Row[]} rows
 * @param {Action} action
 * @param {string} locale  "" for the default one.
 */
async function send(type, rows, action, locale) {
  const parts = await Promise.all(rows.map((row) => operationsOf(type, row, action, locale)));
  /** @type {string[]} */
  const ids = [];
  try {
    for (let at = 0; at < rows.length; at += MOST) {
      const operations = parts.slice(at, at + MOST).flat();
      const { undo } = await ask("batch", { method: "POST", body: { operations }, headers: UNDOABLE });
      if (undo) ids.push(undo);
    }
  } catch (/** @type {any} */ error) {
    for (const id of [...ids].reverse()) await ask(`batch/undo/${id}`, { method: "POST" });
    const number = error.details?.operation;
    const each = parts[0]?.length || 1;
    if (number !== undefined) error.about = rows[ids.length * MOST + Math.floor(number / each)]?.document;
    throw error;
  }
  return ids;
}

/**
 * @param {Type} type
 * @param {Row} row
 * @param {Action} action
 * @param {string} locale
 */
async function operationsOf(type, row, action, locale) {
  const path = pathOf(type, row.document.documentId);
  const localized = /** @type {Record<string, string>} */ (type.localized && locale ? { locale } : {});
  const to = (/** @type {Record<string, string>} */ query) => new URLSearchParams({ ...localized, ...query });
  if (action === "delete") return [{ method: "DELETE", path: path + (type.localized ? "?locale=*" : "") }];
  const fields = "documentId";
  if (action === "unpublish") return [{ method: "POST", path: `${path}/actions/unpublish?${to({ fields })}` }];
  const ifMatch = await tagOf(type, row, localized);
  const draft = { method: "PUT", path: `${path}?${to({ status: "draft", fields })}`, body: { data: {} }, ifMatch };
  return [draft, { method: "PUT", path: `${path}?${to({ fields })}`, body: { data: {} } }];
}

/**
 * The entity tag of a draft as the list shows it, so that no other is published. Throws where it is not so any more.
 * @param {Type} type
 * @param {Row} row
 * @param {Record<string, string>} localized
 */
async function tagOf(type, { document }, localized) {
  const fields = Object.keys(document).filter((name) => {
    return name === "updatedAt" || (name in type.attributes && !NO_VALUE.includes(type.attributes[name].type));
  });
  const query = { ...localized, status: "draft", fields };
  const { data, etag } = await ask(pathOf(type, document.documentId), { query });
  if (fields.some((name) => JSON.stringify(data[name]) !== JSON.stringify(document[name]))) {
    throw Object.assign(new Error("It was changed since this list was shown"), { about: document });
  }
  return etag;
}
