/** The source of a text in the previewed page, read from the text's mark: the document, and the field in its form. */

import { kindOf } from "../form/kinds.js";

const LONGEST = 1000; // characters; no mark of the server's is as long
const PATH = /^[\w-]+(\.[\w-]+)*$/;

/**
 * @typedef {object} Source
 * @property {string} id  The id of the document.
 * @property {string} model  The uid of the document's content type, or of the component or file that contains the text.
 * @property {string} locale  The locale, or "" if the mark has none.
 * @property {string[]} path
 */

/**
 * Return the source that a page sends. Returns null if it is not valid, because anybody may have written the page.
 * @param {unknown} told
 * @returns {Source | null}
 */
export function readSource(told) {
  if (typeof told !== "string" || told.length > LONGEST) return null;
  const params = new URLSearchParams(told);
  const [id, path] = [params.get("documentId") ?? "", params.get("fieldPath") ?? params.get("path") ?? ""];
  if (!id || /^\.{1,2}$/.test(id) || !PATH.test(path)) return null;
  return { id, model: params.get("model") ?? "", locale: params.get("locale") ?? "", path: path.split(".") };
}

/**
 * Return the path of the field that contains the value at a path, or null if there is none.
 *
 * For example, a text of a file is in the field with this file, and a text in `blocks` is in the field with all blocks.
 * @param {import("../model.js").Model} model
 * @param {Record<string, import("../model.js").Attribute>} attributes
 * @param {any} values
 * @param {string[]} path
 * @returns {string[] | null}
 */
export function fieldAt(model, attributes, values, [name, ...rest]) {
  const attribute = Object.hasOwn(attributes, name) ? attributes[name] : undefined;
  if (!attribute || !kindOf(attribute)) return null;
  const nested = attribute.type === "component" || attribute.type === "dynamiczone";
  if (!nested || !rest.length) return [name];
  const listed = Array.isArray(values?.[name]);
  const head = listed ? [name, rest[0]] : [name];
  const item = listed ? (/^\d+$/.test(rest[0]) ? values[name][Number(rest[0])] : undefined) : values?.[name];
  if (!item) return [name];
  const below = listed ? rest.slice(1) : rest;
  if (!below.length) return head;
  const inner = model.components[item.__component ?? attribute.component]?.attributes ?? {};
  const found = fieldAt(model, inner, item, below);
  return found && [...head, ...found];
}
