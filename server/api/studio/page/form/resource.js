/** What a form needs to know of what it edits: its attributes, and how it is read and written. */

import { kindOf } from "./kinds.js";
import { readValue } from "./shape.js";

/**
 * @typedef {import("../model.js").Attribute} Attribute
 * @typedef {import("./values.js").Values} Values
 */

/**
 * @typedef {object} Version
 * @property {any} document  As the API has shown it.
 * @property {string} etag
 * @property {string} publishedEtag  "" where nothing is published.
 * @property {any | null} published  What is published, null where nothing is; the document itself without drafts.
 */

/** @typedef {{base: Values, values: Values, others?: string[]}} Start  What a form begins with. */

/**
 * @typedef {object} FormResource
 * @property {import("../model.js").Model} model  It has the components.
 * @property {Record<string, Attribute>} attributes
 * @property {string} id  "" for what is not there yet.
 * @property {string} place  Where the browser keeps what is not saved.
 * @property {string} placeOfNew  The same of what is not there yet.
 * @property {boolean} isStaged  Whether a save writes a draft, which is published by itself.
 * @property {boolean} checksAll  Whether a save checks also what was not edited.
 * @property {(attribute: Attribute) => boolean} isShared  Whether all locales have one value.
 * @property {(document: any) => string[]} localesOf  The locales that a document has.
 * @property {() => Promise<Version>} read
 * @property {() => Promise<Start>} begin  What a new one begins with.
 * @property {(failure: any) => Promise<Start> | null} beginInstead  What to begin with if it could not be read; null to
 *   show the failure.
 * @property {(data: Values, publishes: boolean) => Promise<string>} create  Resolves to its id.
 * @property {(data: Values, etag: string) => Promise<void>} write  Rejects with 412 if others have changed the same.
 * @property {(etag: string) => Promise<void>} publish  Publish a draft as it was read.
 */

/**
 * The values that a form edits, of what was read.
 * @param {Pick<FormResource, "model" | "attributes">} resource
 * @param {any} document
 * @returns {Values}
 */
export function valuesOf({ model, attributes }, document) {
  const shown = Object.entries(attributes).filter(([, attribute]) => kindOf(attribute));
  return Object.fromEntries(shown.map(([name, attribute]) => [name, readValue(model, attribute, document[name])]));
}
