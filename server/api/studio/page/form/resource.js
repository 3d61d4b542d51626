/** The interface between a form and the thing that it edits: the attributes, and functions for reading and writing. */

import { kindOf } from "./kinds.js";
import { readValue } from "./shape.js";

/**
 * @typedef {import("../model.js").Attribute} Attribute
 * @typedef {import("./values.js").Values} Values
 */

/**
 * @typedef {object} Version
 * @property {any} document  The document, as returned by the API.
 * @property {string} etag
 * @property {string} publishedEtag  The entity tag of the published version, or "" if there is none.
 * @property {any | null} published  The published version, or null if there is none. Without drafts, this is the
 *   document itself.
 */

/** @typedef {{base: Values, values: Values, others?: string[]}} Start  The initial values of a form. */

/**
 * @typedef {object} FormResource
 * @property {import("../model.js").Model} model  The model, which contains the components.
 * @property {Record<string, Attribute>} attributes
 * @property {string} id  The document's id, or "" for a new document.
 * @property {string} place  The key under which the browser stores unsaved changes.
 * @property {string} placeOfNew  The same key for a new document.
 * @property {boolean} isStaged  Whether a save writes a draft, which is published separately.
 * @property {boolean} checksAll  Whether a save also validates attributes that were not edited.
 * @property {(attribute: Attribute) => boolean} isShared  Whether all locales have the same value.
 * @property {(document: any) => string[]} localesOf  Return the locales in which a document exists.
 * @property {() => Promise<Version>} read
 * @property {() => Promise<Start>} begin  Return the initial values for a new document.
 * @property {(failure: any) => Promise<Start> | null} beginInstead  Return the initial values if the document could not
 *   be read, or null to show the error.
 * @property {(data: Values, publishes: boolean) => Promise<string>} create  Resolves to the id of the new document.
 * @property {(data: Values, etag: string) => Promise<void>} write  Rejects with 412 if others have changed the same
 *   attributes.
 * @property {() => Promise<boolean>} renew  Load the content types again. Resolves to whether anything has changed; the
 *   form then gets another resource.
 * @property {(etag: string) => Promise<void>} publish  Publish a draft, provided that it has not changed since it was
 *   read.
 */

/**
 * Return the values that a form edits from a document that was read.
 * @param {Pick<FormResource, "model" | "attributes">} resource
 * @param {any} document
 * @returns {Values}
 */
export function valuesOf({ model, attributes }, document) {
  const shown = Object.entries(attributes).filter(([, attribute]) => kindOf(attribute));
  return Object.fromEntries(shown.map(([name, attribute]) => [name, readValue(model, attribute, document[name])]));
}
