/** Restores a deleted document under its id, in all locales that it had. */

import { ask } from "../api.js";
import { rightsOf } from "../documents/rights.js";
import { historyPath } from "../history/versions.js";

/**
 * @typedef {{locale: string, status: "published" | "draft", at: string}} Version
 */

/**
 * @typedef {object} Deleted  A deleted document, as returned by the API.
 * @property {string} documentId
 * @property {string | null} title
 * @property {{name: string} | null} author
 * @property {string | null} date
 * @property {Version[]} versions
 */

/**
 * Return whether the user may find and restore deleted documents of a content type.
 * @param {import("../model.js").Model} model
 * @param {import("../model.js").Type} type
 */
export function mayRestore(model, type) {
  const may = ["read", "restore"].every((action) => model.allows("history", action));
  return may && rightsOf(model, type, true).create;
}

/**
 * Write the last version of a deleted document. If the content type has drafts, it is restored as a draft. Throws
 * ApiError.
 * @param {import("../model.js").Model} model
 * @param {import("../model.js").Type} type
 * @param {Deleted} document
 */
export async function restoreDeleted(model, type, { documentId, versions }) {
  const path = historyPath({ type, id: documentId });
  const draft = model.seesDrafts(type);
  for (const locale of new Set(versions.map((version) => version.locale))) {
    const there = versions.filter((version) => version.locale === locale);
    const last = there.find(({ status }) => status === (draft ? "draft" : "published")) ?? there[0];
    const where = { ...(type.localized ? { locale } : {}), ...(draft ? { status: "draft" } : {}) };
    const body = { at: last.at, status: last.status };
    await ask(`${path}/restore`, { method: "POST", query: { ...where, fields: ["documentId"] }, body });
  }
}
