/** The form resource for a document of a content type. The modules in form/ edit it. */

import { noteSecrets, placeOf } from "../form/unsaved.js";
import { localeParam, localesOf, startOf, startOfLocale } from "./beginning.js";
import { isShared } from "./locales.js";
import { readDocument } from "./reading.js";
import { create, publish, write } from "./writing.js";

/**
 * @typedef {object} Subject  The document that a form edits.
 * @property {import("../model.js").Model} model
 * @property {import("../model.js").Type} type
 * @property {string} id  The document's id, or "" for a new document.
 * @property {string} locale
 * @property {boolean} drafts  Whether the form edits a draft, which is published separately.
 * @property {() => Promise<boolean>} renew  See FormResource.
 * @property {string} from  The id of the document that a new document is a copy of, or "" if it is not a copy.
 */

/**
 * @param {Subject} subject
 * @returns {import("../form/resource.js").FormResource}
 */
export function formOf(subject) {
  const { model, type, id, locale, drafts, renew } = subject;
  const place = placeOf(model, type, id, locale);
  noteSecrets(place, model, type.attributes);
  const address = { type, id, locale: localeParam(subject), draft: drafts };
  const isMissing = (/** @type {any} */ failure) => type.localized && id !== "" && failure.status === 404;
  return {
    model,
    attributes: type.attributes,
    id,
    place,
    placeOfNew: placeOf(model, type, "", locale),
    isStaged: drafts,
    checksAll: type.drafts || !id,
    isShared: (attribute) => isShared(type, attribute),
    localesOf,
    read: () => readDocument(model, type, id, localeParam(subject)),
    begin: () => startOf(subject),
    beginInstead: (failure) => (isMissing(failure) ? startOfLocale(subject) : null),
    create: (data, publishes) => create({ ...address, draft: drafts && !publishes }, data),
    write: (data, etag) => write(address, data, etag),
    renew,
    publish: (etag) => publish(address, etag),
  };
}
