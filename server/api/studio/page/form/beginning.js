/** What a form begins with: the values of a document that was read, or of one that is only being made. */

import { ApiError } from "../api.js";
import { kindOf } from "./kinds.js";
import { isShared } from "./locales.js";
import { readDocument, readElsewhere } from "./reading.js";
import { readValue } from "./shape.js";

/** @typedef {import("./values.js").Values} Values */

/** @param {import("./editing.js").Subject} subject */
export const localeParam = ({ type, locale }) => (type.localized ? { locale } : {});

/**
 * The values that a form edits, of a document that was read.
 * @param {import("../model.js").Model} model
 * @param {import("../model.js").Type} type
 * @param {any} document
 * @returns {Values}
 */
export function valuesOf(model, type, document) {
  const shown = Object.entries(type.attributes).filter(([, attribute]) => kindOf(attribute));
  return Object.fromEntries(shown.map(([name, attribute]) => [name, readValue(model, attribute, document[name])]));
}

/**
 * What a document that is there in other locales begins with in a new one: what is shared.
 * @param {import("./editing.js").Subject} subject
 * @returns {Promise<{others: string[], base: Values, values: Values}>}
 */
export async function startOfLocale({ model, type, id }) {
  const source = await readElsewhere(model, type, id);
  if (!source) throw new ApiError(404, "There is no such document");
  const values = valuesOf(model, type, {});
  const there = valuesOf(model, type, source);
  for (const [name, attribute] of Object.entries(type.attributes)) {
    if (isShared(type, attribute) && name in there) values[name] = there[name];
  }
  return { others: localesOf(source), base: values, values };
}

/** @param {any} document @returns {string[]} */
export function localesOf({ locale, localizations = [] }) {
  return [locale, ...localizations.map((/** @type {any} */ other) => other.locale)];
}

/**
 * What a new document begins with: what another one has but its uid, or the defaults of the type.
 * @param {import("./editing.js").Subject} subject
 * @returns {Promise<Values>}
 */
export async function startOf(subject) {
  const { model, type, from } = subject;
  const source = from ? (await readDocument(model, type, from, localeParam(subject))).document : {};
  const values = valuesOf(model, type, source);
  for (const name of Object.keys(values)) {
    const attribute = type.attributes[name];
    if (!from) values[name] = attribute.default ?? values[name];
    else if (attribute.type === "uid") values[name] = null;
  }
  return values;
}
