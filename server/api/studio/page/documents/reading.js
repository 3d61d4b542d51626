/** Reads a document for its form: the version to edit, its entity tag, and the published version. */

import { ApiError, ask } from "../api.js";
import { populateOf, readValue, sentValue } from "../form/shape.js";
import { same } from "../form/values.js";

/** @typedef {import("../form/resource.js").Version} Version */

/**
 * Return the API's path for a document. A single type has only one document.
 * @param {import("../model.js").Type} type
 * @param {string} id
 */
export const pathOf = (type, id) => (type.single ? type.path : `${type.path}/${encodeURIComponent(id)}`);

/**
 * Read a document. Numbers that JavaScript can't represent exactly are returned as `Exact`. Throws ApiError.
 * @param {import("../model.js").Model} model
 * @param {import("../model.js").Type} type
 * @param {string} id
 * @param {object} locale  The locale parameter, or {} if the content type is not localized.
 * @returns {Promise<Version>}
 */
export async function readDocument(model, type, id, locale) {
  const path = pathOf(type, id);
  const query = { ...locale, populate: populated(model, type) };
  if (!model.seesDrafts(type)) {
    const { data, etag } = await ask(path, { query, exact: true });
    return { document: data, etag, publishedEtag: etag, published: data };
  }
  const [draft, published] = await Promise.all([
    ask(path, { query: { ...query, status: "draft" }, exact: true }),
    readPublished(model, type, id, query),
  ]);
  return { document: draft.data, etag: draft.etag, publishedEtag: published.etag, published: published.data };
}

/**
 * Read the published version of a document, or null if there is none. This requests a list with a filter, because a
 * request for the document itself would result in a 404, which browsers log as an error. Throws ApiError.
 * @param {import("../model.js").Model} model
 * @param {import("../model.js").Type} type
 * @param {string} id
 * @param {object} query
 * @returns {Promise<{data: any, etag: string}>}
 */
async function readPublished(model, type, id, query) {
  if (!type.single) {
    const filters = { documentId: { $eq: id } };
    const { data: found, etag } = await ask(type.path, { query: { ...query, filters }, exact: true });
    return found.length ? { data: found[0], etag } : { data: null, etag: "" };
  }
  try {
    return await ask(pathOf(type, id), { query, exact: true });
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return { data: null, etag: "" };
    throw error;
  }
}

/**
 * Read a document in any locale in which it exists, preferably the default locale. Resolves to null if there is none.
 * Throws ApiError.
 * @param {import("../model.js").Model} model
 * @param {import("../model.js").Type} type
 * @param {string} id
 * @returns {Promise<any>}
 */
export async function readElsewhere(model, type, id) {
  for (const { code } of [...model.locales].sort((a, b) => Number(b.isDefault) - Number(a.isDefault))) {
    try {
      return (await readDocument(model, type, id, { locale: code })).document;
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 404) throw error;
    }
  }
  return null;
}

/** @param {import("../model.js").Model} model @param {import("../model.js").Type} type */
function populated(model, type) {
  const own = populateOf(model, type.attributes);
  return type.localized ? { ...own, localizations: { fields: ["locale"] } } : own;
}

/**
 * Return the publication status of a version.
 * @param {import("../model.js").Model} model
 * @param {import("../model.js").Type} type
 * @param {Version} version
 * @returns {import("./status.js").Status}
 */
export function statusOf(model, type, { document, published }) {
  if (!published) return "draft";
  const alike = Object.entries(type.attributes).every(([name, attribute]) => {
    const plain = (/** @type {any} */ version) => {
      return sentValue(model, attribute, null, readValue(model, attribute, version[name]));
    };
    return same(plain(document), plain(published));
  });
  return alike ? "published" : "modified";
}
