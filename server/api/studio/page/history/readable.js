/** Converts values of earlier versions to text for display, or to the form's representation. */

import { isList, readValue, titleField } from "../form/shape.js";
import { isEmpty } from "../form/values.js";
import { t } from "../language.js";
import { day, labelOf, timestamp } from "../text.js";
import { writeJson } from "../json.js";
import { documentKey } from "./comparison.js";

/**
 * @typedef {import("../model.js").Model} Model
 * @typedef {import("../model.js").Attribute} Attribute
 * @typedef {import("./comparison.js").Known} Known
 * @typedef {{key: string, text: string, gone: boolean}} Item  A document or file to which a value refers. `gone` is
 *   true if it no longer exists.
 */

/** Return whether an attribute contains components. @param {Attribute} attribute */
export const holdsComponents = ({ type }) => type === "component" || type === "dynamiczone";

/** Return a value as a list. @param {any} value @returns {any[]} */
export const listOf = (value) => (isEmpty(value) ? [] : Array.isArray(value) ? value : [value]);

/**
 * Return the component type of an item in an attribute.
 * @param {Model} model
 * @param {Attribute} attribute
 * @param {any} item
 */
export function componentOf(model, attribute, item) {
  return model.components[item.__component ?? attribute.component] ?? { label: t`Component`, attributes: {} };
}

/**
 * Return the documents or files to which a value refers, or null if the attribute contains no references.
 * @param {Attribute} attribute
 * @param {any} value
 * @param {Model} model
 * @param {Known} known
 * @returns {Item[] | null}
 */
export function itemsOf(attribute, value, model, known) {
  if (attribute.type === "media") {
    return listOf(value).map((path) => {
      const file = known.files.get(path);
      return { key: path, text: file?.name ?? path.split("/").at(-1), gone: file === null };
    });
  }
  if (attribute.type !== "relation") return null;
  const title = titleField(model, attribute);
  return listOf(value).map((target) => {
    if (typeof target !== "string") return { key: writeJson(target), text: target.documentId, gone: false };
    const found = known.documents.get(documentKey(attribute.target ?? "", target));
    return { key: target, text: String((title && found?.[title]) || target), gone: found === null };
  });
}

/**
 * Return a value as text. Strings stay unchanged; JSON is formatted in several lines.
 * @param {Attribute} attribute
 * @param {any} value
 */
export function textOf({ type }, value) {
  if (isEmpty(value)) return "";
  if (type === "boolean") return value ? t`Yes` : t`No`;
  if (type === "date") return day(value);
  if (type === "datetime" || type === "timestamp") return timestamp(value);
  return typeof value === "object" && type !== "decimal" ? writeJson(value, 2) : String(value);
}

/** Return the text of a `blocks` value, with one line for each block. @param {any} blocks @returns {string} */
export function wordsOfBlocks(blocks) {
  /** @param {any} node @returns {string} */
  const words = (node) => node.text ?? (node.children ?? []).map(words).join("");
  const lines = listOf(blocks).flatMap((block) => {
    if (block.type === "list") return (block.children ?? []).map((/** @type {any} */ item) => `• ${words(item)}`);
    if (block.type === "image") return [block.image?.alternativeText || block.image?.name || t`Image`];
    return [words(block)];
  });
  return lines.join("\n");
}

/**
 * Return the content of a component as text, with one line for each attribute.
 * @param {Model} model
 * @param {Attribute} attribute
 * @param {any} item
 * @param {Known} known
 * @returns {string}
 */
export function outlineOf(model, attribute, item, known) {
  const component = componentOf(model, attribute, item);
  const lines = Object.entries(component.attributes).flatMap(([name, inner]) => {
    const value = item[name];
    if (isEmpty(value)) return [];
    return [`${labelOf(name)}: ${inOutline(model, inner, value, known)}`];
  });
  return lines.join("\n");
}

/** @param {Model} model @param {Attribute} inner @param {any} value @param {Known} known @returns {string} */
function inOutline(model, inner, value, known) {
  const items = itemsOf(inner, value, model, known);
  if (items) return items.map(({ text }) => text).join(", ");
  if (inner.type === "blocks") return wordsOfBlocks(value);
  if (!holdsComponents(inner)) return textOf(inner, value);
  const below = listOf(value).map((one) => outlineOf(model, inner, one, known).replace(/^/gm, "  "));
  return `\n${below.join("\n\n")}`;
}

/**
 * Convert a value to the form's representation, without references to documents or files that no longer exist.
 * Components that are at the same position in the form keep their ids, so that their hidden values are preserved.
 * @param {Model} model
 * @param {Attribute} attribute
 * @param {any} value
 * @param {Known} known
 * @param {any} current  The form's current value.
 */
export function formValue(model, attribute, value, known, current) {
  const made = readValue(model, attribute, answered(model, attribute, value, known, current));
  if (!holdsComponents(attribute) || !Array.isArray(made)) return made;
  return made.map((item) => (item.id === undefined ? { ...item, __temp_key__: `restored-${++restored}` } : item));
}

let restored = 0; // components that were put into forms, which have no ids yet

/**
 * Return a value in the format of an API response.
 * @param {Model} model @param {Attribute} attribute @param {any} value @param {Known} known @param {any} current
 * @returns {any}
 */
function answered(model, attribute, value, known, current) {
  if (isEmpty(value)) return null;
  const [now, many] = [listOf(current), isList(attribute)];
  const made = listOf(value).flatMap((item, index) => {
    if (attribute.type === "media") return known.files.get(item) ?? [];
    if (attribute.type === "relation") {
      const found = known.documents.get(documentKey(attribute.target ?? "", item));
      return found === null ? [] : [found ?? { documentId: item }];
    }
    if (!holdsComponents(attribute)) return [item];
    const kind = attribute.type === "dynamiczone" ? { __component: item.__component } : {};
    const there = now[index]?.__component === kind.__component ? now[index] : undefined;
    const inner = Object.entries(componentOf(model, attribute, item).attributes).map(([name, one]) => {
      return [name, answered(model, one, item[name], known, there?.[name])];
    });
    return [{ id: there?.id, ...kind, ...Object.fromEntries(inner) }];
  });
  if (!many && (attribute.type === "media" || attribute.type === "relation" || holdsComponents(attribute))) {
    return made[0] ?? null;
  }
  return many ? made : value;
}
