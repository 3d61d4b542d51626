/** Texts in the previewed page that come from other documents than the open one. */

import { addressTo } from "../addresses.js";
import { ApiError, ask } from "../api.js";
import { pathOf } from "../documents/reading.js";

/** @typedef {import("../model.js").Type} Type */

/**
 * Return whether a text comes from the open document, in the form's locale.
 * @param {import("./source.js").Source} source
 * @param {import("../documents/form.js").Subject} subject
 */
export function isOf(source, { model, type, id, locale }) {
  const named = model.types.find(({ uid }) => uid === source.model);
  const there = source.id === id && (!named || named === type);
  return there && (!type.localized || !source.locale || source.locale === locale);
}

/**
 * Return the URL of the form that contains a text. Returns "" if there is none, or if the user may not open it.
 * @param {import("../model.js").Model} model
 * @param {import("./source.js").Source} source
 * @param {string} panel  The panel to open next to the form.
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
 * Return the content type of the document that a text comes from, or undefined if the user can't see this document.
 *
 * The mark of a text in a component or of a file does not contain the content type. Then it is the type that has such
 * an attribute and a document with this id.
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
