/** The initial values of a form for a new document or a new locale. */

import { ApiError } from "../api.js";
import { valuesOf } from "../form/resource.js";
import { UNSEEN, withoutUnseen } from "../form/values.js";
import { t } from "../language.js";
import { isShared } from "./locales.js";
import { readDocument, readElsewhere } from "./reading.js";

/** @typedef {import("../form/values.js").Values} Values */

/** @param {import("./form.js").Subject} subject */
export const localeParam = ({ type, locale }) => (type.localized ? { locale } : {});

/**
 * Return the initial values for a new locale of an existing document: the attributes that all locales share.
 * @param {import("./form.js").Subject} subject
 * @returns {Promise<{others: string[], base: Values, values: Values}>}
 */
export async function startOfLocale({ model, type, id }) {
  const source = await readElsewhere(model, type, id);
  if (!source) throw new ApiError(404, t`This document does not exist`);
  const form = { model, attributes: type.attributes };
  const values = withoutUnseen(valuesOf(form, {}));
  const there = valuesOf(form, source);
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
 * Return the initial values for a new document: the values of the document to copy, except for its uid, or the content
 * type's defaults. The defaults do not count as edits, because the server uses the same defaults.
 * @param {import("./form.js").Subject} subject
 * @returns {Promise<{base: Values, values: Values}>}
 */
export async function startOf(subject) {
  const { model, type, from } = subject;
  const form = { model, attributes: type.attributes };
  const base = withoutUnseen(valuesOf(form, {}));
  for (const name of Object.keys(base)) base[name] = type.attributes[name].default ?? base[name];
  if (!from) return { base, values: base };
  const values = valuesOf(form, (await readDocument(model, type, from, localeParam(subject))).document);
  for (const name of Object.keys(values)) {
    if (type.attributes[name].type === "uid") values[name] = null;
    else if (values[name] === UNSEEN) values[name] = base[name];
  }
  return { base, values: withoutUnseen(values) };
}
