/** Bringing a deleted document back under its id, in all the languages that it had. */

import { ask } from "../api.js";
import { rightsOf } from "../documents/rights.js";
import { historyPath } from "../history/versions.js";

/**
 * @typedef {{locale: string, status: "published" | "draft", at: string}} Version
 */

/**
 * @typedef {object} Deleted  As the API has it.
 * @property {string} documentId
 * @property {string | null} title
 * @property {{name: string} | null} author
 * @property {string | null} date
 * @property {Version[]} versions
 */

/**
 * Whether documents of a type can be found and brought back that were deleted.
 * @param {import("../model.js").Model} model
 * @param {import("../model.js").Type} type
 */
export function mayRestore(model, type) {
  const may = ["read", "restore"].every((action) => model.allows("history", action));
  return may && rightsOf(model, type, true).create;
}

/**
 * Write what a document was last. Where there are drafts, it comes back as one. Throws ApiError.
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
