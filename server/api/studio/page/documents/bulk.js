/** Actions for several documents. They are sent in batches: either all documents are changed, or none. */

import { ask } from "../api.js";
import { t } from "../language.js";
import { pathOf } from "./reading.js";
import { rightsOf } from "./rights.js";
import { UNDOABLE } from "../undo/undo.js";

/**
 * @typedef {import("../model.js").Type} Type
 * @typedef {import("../list/resource.js").Row} Row
 * @typedef {import("../list/resource.js").BulkAction} BulkAction
 * @typedef {"publish" | "unpublish" | "delete"} Action
 */

const MOST = 50; // documents in one batch, which takes 100 operations, two of them to publish one
const NO_VALUE = ["relation", "media", "component", "dynamiczone"];

/**
 * Return the actions that the user may perform.
 * @param {import("../model.js").Model} model
 * @param {Type} type
 * @returns {BulkAction[]}
 */
export function actionsOf(model, type) {
  if (type.single) return [];
  const rights = rightsOf(model, type, false);
  /** @param {Action} action @returns {BulkAction["run"]} */
  const run = (action) => (rows, { choices }) => send(type, rows, action, choices.locale ?? "");
  const status = (/** @type {Row} */ row) => /** @type {import("./rows.js").DocumentRow} */ (row).status;
  /** @type {BulkAction[]} */
  const publishing = [
    { name: "publish", label: t`Publish`, done: t`published`, concerns: (row) => status(row) !== "published",
      run: run("publish") },
    { name: "unpublish", label: t`Unpublish`, done: t`unpublished`, concerns: (row) => status(row) !== "draft",
      run: run("unpublish") },
  ];
  /** @type {BulkAction} */
  const removing = { name: "delete", label: t`Delete`, done: t`deleted`, removes: true, concerns: () => true,
    run: run("delete") };
  return [...(rights.publish ? publishing : []), ...(rights.remove ? [removing] : [])];
}

/**
 * Perform an action. Returns the ids with which it can be undone. If nothing was changed, throws ApiError, whose
 * `about` is the title of the document that caused the error.
 * @param {Type} type
 * @param {Row[]} rows
 * @param {Action} action
 * @param {string} locale  The locale, or "" for the default locale.
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
    if (number !== undefined) error.about = rows[ids.length * MOST + Math.floor(number / each)]?.title;
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
  const path = pathOf(type, row.id);
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
 * Return the entity tag of a draft as shown in the list, so that no later draft is published. Throws if the draft has
 * changed.
 * @param {Type} type
 * @param {Row} row
 * @param {Record<string, string>} localized
 */
async function tagOf(type, { id, title, values }, localized) {
  const fields = Object.keys(values).filter((name) => {
    return name === "updatedAt" || (name in type.attributes && !NO_VALUE.includes(type.attributes[name].type));
  });
  const query = { ...localized, status: "draft", fields };
  const { data, etag } = await ask(pathOf(type, id), { query });
  if (fields.some((name) => JSON.stringify(data[name]) !== JSON.stringify(values[name]))) {
    throw Object.assign(new Error(t`Changed since this list was loaded`), { about: title });
  }
  return etag;
}
