/** The differences between two versions, and the titles of the documents and files to which they refer. */

import { ask } from "../api.js";
import { localeParam } from "../documents/beginning.js";
import { titleField } from "../form/shape.js";
import { historyPath } from "./versions.js";

/**
 * @typedef {import("../model.js").Model} Model
 * @typedef {import("../model.js").Attribute} Attribute
 * @typedef {import("./versions.js").Version} Version
 */

/**
 * @typedef {object} Comparison
 * @property {Record<string, {from: any, to: any}>} differences  The differences by attribute, as returned by the API.
 * @property {{from: string[], to: string[]}} unread  Names in the versions for which the content type no longer has an
 *   attribute.
 * @property {Known} known
 */

/**
 * The documents and files to which values refer, as returned by the API. A missing one is null.
 * @typedef {{documents: Map<string, any>, files: Map<string, any>}} Known
 */

const MOST = 100; // ids in one request
const OF_FILES = ["name", "url", "alternativeText", "mime", "formats", "updatedAt"];

/**
 * Compare two versions. Throws ApiError or AbortError.
 * @param {import("../documents/form.js").Subject} subject
 * @param {Version | null} left  The older version, or null for the version before `right`.
 * @param {Version} right
 * @param {AbortSignal} [signal]
 * @returns {Promise<Comparison>}
 */
export async function compare(subject, left, right, signal) {
  const query = {
    ...localeParam(subject),
    status: right.status,
    to: right.commit,
    ...(left ? { fromStatus: left.status, from: left.commit === right.commit ? "" : left.commit } : {}),
  };
  const { data, meta } = await ask(`${historyPath(subject)}/diff`, { query, signal, exact: true });
  const { model, type, locale } = subject;
  const known = await referencesIn(model, [{ type, differences: data }], { locale, signal });
  return { differences: data, unread: meta.unread, known };
}

/**
 * @typedef {object} Reading
 * @property {string} [locale]  The preferred locale of the titles.
 * @property {string} [at]  The version of the site from which the titles are read, unless it is the one that is shown.
 * @property {AbortSignal} [signal]
 */

/**
 * Return the documents and files to which values refer, for the differences in documents of some content types.
 * @param {Model} model
 * @param {{type: import("../model.js").Type, differences: Record<string, {from: any, to: any}>}[]} compared
 * @param {Reading} reading
 * @returns {Promise<Known>}
 */
export async function referencesIn(model, compared, reading) {
  /** @type {Named} */
  const named = { documents: new Map(), files: new Set() };
  for (const { type, differences } of compared) {
    for (const [name, { from, to }] of Object.entries(differences)) {
      for (const value of [from, to]) gather(model, type.attributes[name], value, named);
    }
  }
  const asked = [...named.documents].map(([uid, ids]) => documentsOf(model, uid, [...ids], reading));
  const [files, ...documents] = await Promise.all([filesOf(model, [...named.files], reading), ...asked]);
  return { documents: new Map(documents.flat()), files: new Map(files) };
}

/**
 * @typedef {{documents: Map<string, Set<string>>, files: Set<string>}} Named
 * @param {Model} model
 * @param {Attribute | undefined} attribute
 * @param {any} value
 * @param {Named} named
 */
function gather(model, attribute, value, named) {
  if (!attribute || value === null) return;
  for (const item of Array.isArray(value) ? value : [value]) {
    if (attribute.type === "media") named.files.add(item);
    else if (attribute.type === "relation" && attribute.target && typeof item === "string") {
      named.documents.set(attribute.target, (named.documents.get(attribute.target) ?? new Set()).add(item));
    } else if (attribute.type === "component" || attribute.type === "dynamiczone") {
      const inner = model.components[item.__component ?? attribute.component]?.attributes ?? {};
      for (const [name, one] of Object.entries(inner)) gather(model, one, item[name] ?? null, named);
    }
  }
}

/** Return the key of a document in `Known`. @param {string} uid @param {string} id */
export const documentKey = (uid, id) => `${uid}/${id}`;

/**
 * Return the existing documents of a content type with the given ids, in the given locale if they exist in it.
 * @param {Model} model
 * @param {string} uid
 * @param {string[]} ids
 * @param {Reading} reading
 * @returns {Promise<[string, any][]>}
 */
async function documentsOf(model, uid, ids, { locale = model.defaultLocale, at, signal }) {
  const type = model.types.find((one) => one.uid === uid);
  if (!type || type.single) return [];
  const title = titleField(model, /** @type {Attribute} */ ({ type: "relation", target: uid }));
  const everywhere = type.localized ? { locale: "*" } : {};
  const common = { ...model.statusParam(type), ...everywhere, fields: [title ?? "documentId"], at };
  const found = new Map(ids.map((id) => [documentKey(uid, id), /** @type {any} */ (null)]));
  const most = Math.min(MOST, model.pageSize.max);
  for (const some of parts(ids, Math.max(1, Math.floor(most / (type.localized ? model.locales.length : 1))))) {
    const query = { ...common, filters: { documentId: { $in: some } }, pagination: { pageSize: most } };
    for (const one of (await ask(type.path, { query, signal })).data) {
      const key = documentKey(uid, one.documentId);
      if (!found.get(key) || one.locale === locale) found.set(key, one);
    }
  }
  return [...found];
}

/**
 * Return the existing files with the given paths in /uploads. If the user may not list files, return none.
 * @param {Model} model
 * @param {string[]} paths
 * @param {Reading} reading
 * @returns {Promise<[string, any][]>}
 */
async function filesOf(model, paths, { at, signal }) {
  if (!model.allows("upload", "find")) return [];
  const found = new Map(paths.map((path) => [path, /** @type {any} */ (null)]));
  for (const some of parts(paths, MOST)) {
    const filters = { url: { $in: some.map(urlOf) } };
    const { body } = await ask("api/upload/files", { query: { fields: OF_FILES, filters, limit: MOST, at }, signal });
    for (const file of body) found.set(some.find((path) => urlOf(path) === file.url) ?? "", file);
  }
  return [...found];
}

/** @param {string} path */
const urlOf = (path) => `/uploads/${path.split("/").map(escaped).join("/")}`;

/** @param {string} part */
function escaped(part) {
  return encodeURIComponent(part).replace(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`);
}

/** @param {string[]} list @param {number} size */
function parts(list, size) {
  return Array.from({ length: Math.ceil(list.length / size) }, (_, i) => list.slice(i * size, (i + 1) * size));
}
