/** Texts of a page that come from other documents than the one that is open. */

import { addressTo } from "../addresses.js";
import { ApiError, ask } from "../api.js";
import { pathOf } from "../documents/reading.js";

/** @typedef {import("../model.js").Type} Type */

/**
 * Whether a text comes from the document that is open, in the locale that is.
 * @param {import("./source.js").Source} source
 * @param {import("../documents/form.js").Subject} subject
 */
export function isOf(source, { model, type, id, locale }) {
  const named = model.types.find(({ uid }) => uid === source.model);
  const there = source.id === id && (!named || named === type);
  return there && (!type.localized || !source.locale || source.locale === locale);
}

/**
 * The address of the form that has the text of a source, "" where there is none that one may open.
 * @param {import("../model.js").Model} model
 * @param {import("./source.js").Source} source
 * @param {string} panel  What is to be open beside it.
 */
export async function addressOfSource(model, source, panel) {
  if (source.locale && !model.locales.some(({ code }) => code === source.locale)) return "";
  const type = await typeOf(model, source);
  if (!type) return "";
  const locale = type.localized && source.locale !== model.defaultLocale ? source.locale : "";
  const params = Object.entries({ locale, panel, field: source.path.join(".") }).filter(([, value]) => value);
  return addressTo("document", { type: type.name, id: source.id }, Object.fromEntries(params));
}

/**
 * The type of the document that a text comes from, undefined where there is no such document that one may see. A mark
 * in a component or of a file does not name it: then it is the type that has such an attribute, and such a document.
 * @param {import("../model.js").Model} model
 * @param {import("./source.js").Source} source
 */
async function typeOf(model, source) {
  const named = model.listed.find(({ uid }) => uid === source.model);
  for (const type of named ? [named] : model.listed.filter((type) => mayHold(type, source))) {
    const status = model.seesDrafts(type) ? { status: "draft" } : {};
    const locale = type.localized && source.locale ? { locale: source.locale } : {};
    try {
      const { data } = await ask(pathOf(type, source.id), { query: { fields: ["documentId"], ...status, ...locale } });
      if (data?.documentId === source.id) return type;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error; // It has none, or none that one may see.
    }
  }
  return undefined;
}

/** @param {Type} type @param {import("./source.js").Source} source */
function mayHold(type, { path: [name] }) {
  const nested = ["component", "dynamiczone", "media"];
  return Object.hasOwn(type.attributes, name) && nested.includes(type.attributes[name].type);
}
