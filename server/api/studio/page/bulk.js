/** What can be done with the documents that are selected in a list: publish them, delete them; all or none. */

import { ask } from "./api.js";
import { Dialog } from "./dialog.js";
import { pathOf } from "./form/reading.js";
import { counted, titleOf } from "./text.js";
import { html, useEffect, useState } from "./vendor/preact.js";

/**
 * @typedef {import("./model.js").Type} Type
 * @typedef {import("./documents.js").Row} Row
 * @typedef {"publish" | "delete"} Action
 */

/** @type {Record<Action, {label: string, done: string, warning: string}>} */
const ACTIONS = {
  publish: {
    label: "Publish",
    done: "published",
    warning: "Everybody who may read them sees them at once, as their drafts are now. This can't be undone here.",
  },
  delete: {
    label: "Delete",
    done: "deleted",
    warning: "They are deleted in all languages, with their drafts. This can't be undone here.",
  },
};
const TITLES_SHOWN = 5;

/**
 * The bar with what can be done. Both are asked about before, since no request takes them back exactly.
 * @param {{type: Type, rows: Row[], rights: import("./form/rights.js").Rights, locale: string,
 *   done: (action: Action) => void, clear: () => void}} props
 */
export function BulkBar({ type, rows, rights, locale, done, clear }) {
  const [asking, setAsking] = useState(/** @type {Action | ""} */ (""));
  const [told, setTold] = useState("");
  const open = rows.filter((row) => row.status !== "published");
  useEffect(() => {
    if (rows.length) setTold("");
  }, [rows.length]);
  /** @param {Action} action */
  const concerned = (action) => (action === "publish" ? open : rows);
  /** @param {Action} action */
  const act = async (action) => {
    const documents = concerned(action);
    await send(type, documents, action, locale);
    setAsking("");
    setTold(`${countOf(documents)} ${ACTIONS[action].done}`);
    done(action);
  };
  const shown = rows.length || told ? "is-shown" : "";
  return html`<div class=${`bulk ${shown}`} role="region" aria-label="Selected documents">
    <span role="status">${told || (rows.length ? `${counted(rows.length)} selected` : "")}</span>
    ${rows.length > 0 && html`<span class="bulk-actions">
      ${rights.publish && open.length > 0 && html`<button class="button" type="button"
        onClick=${() => setAsking("publish")}>Publish ${counted(open.length)}</button>`}
      ${rights.remove && html`<button class="button" type="button"
        onClick=${() => setAsking("delete")}>Delete ${counted(rows.length)}</button>`}
      <button class="button" type="button" onClick=${clear}>Select none</button>
    </span>`}
    ${asking && html`<${Question} ...${{ type, action: asking, rows: concerned(asking), act }}
      close=${() => setAsking("")} />`}
  </div>`;
}

/** @param {Row[]} rows */
const countOf = (rows) => `${counted(rows.length)} ${rows.length === 1 ? "document" : "documents"}`;

/**
 * @param {{type: Type, action: Action, rows: Row[], act: (action: Action) => Promise<void>, close: () => void}} props
 */
function Question({ type, action, rows, act, close }) {
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const { label, warning } = ACTIONS[action];
  const title = `${label} ${countOf(rows)}?`;
  const send = () => {
    setBusy(true);
    act(action).catch((refused) => {
      const about = rows[refused.details?.operation];
      setError(`${about ? `${titleOf(type, about.document)}: ` : ""}${refused.message}. Nothing was changed.`);
      setBusy(false);
    });
  };
  return html`<${Dialog} label=${title} close=${close}>
    <h2 class="dialog-title">${title}</h2>
    <ul class="dialog-list">
      ${rows.slice(0, TITLES_SHOWN).map(
        ({ document }) => html`<li key=${document.documentId}>${titleOf(type, document)}</li>`,
      )}
      ${rows.length > TITLES_SHOWN && html`<li>and ${counted(rows.length - TITLES_SHOWN)} more</li>`}
    </ul>
    <p>${warning}</p>
    <p class="field-error" role="alert">${error}</p>
    <div class="dialog-actions">
      <button class="button" type="button" onClick=${close}>Cancel</button>
      <button class="button primary" type="button" disabled=${busy} onClick=${send}>${label}</button>
    </div>
  <//>`;
}

/**
 * Do it in one request: with all of the documents, or with none. Throws ApiError.
 * @param {Type} type
 * @param {Row[]} rows
 * @param {Action} action
 * @param {string} locale  "" for the default one.
 */
async function send(type, rows, action, locale) {
  const operations = rows.map(({ document }) => {
    const path = pathOf(type, document.documentId);
    if (action === "delete") return { method: "DELETE", path: path + (type.localized ? "?locale=*" : "") };
    const query = new URLSearchParams({ fields: "documentId", ...(type.localized && locale ? { locale } : {}) });
    return { method: "PUT", path: `${path}?${query}`, body: { data: {} } };
  });
  await ask("batch", { method: "POST", body: { operations } });
}
