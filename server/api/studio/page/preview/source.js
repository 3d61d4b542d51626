/** Where a text of a page comes from, as its mark says it: which document, and which field of its form. */

import { kindOf } from "../form/kinds.js";

const LONGEST = 1000; // characters; no mark of the server's is as long
const PATH = /^[\w-]+(\.[\w-]+)*$/;

/**
 * @typedef {object} Source
 * @property {string} id  Of the document.
 * @property {string} model  The uid of its type, or of what the text is in: a component, or a file.
 * @property {string} locale  "" where the mark has none.
 * @property {string[]} path
 */

/**
 * What a page says of a text, null where it can't be what a mark says: anybody may have written the page.
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
 * The path of the field that has what is at a path, null where the form has none: a text of a file, say, is in the
 * field of that file, one of `blocks` in that of them all.
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
