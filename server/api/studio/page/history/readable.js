/** Values of earlier versions as people read them, and as a form holds them. */

import { isList, readValue, titleField } from "../form/shape.js";
import { isEmpty } from "../form/values.js";
import { day, labelOf, timestamp } from "../text.js";
import { writeJson } from "../json.js";
import { documentKey } from "./comparison.js";

/**
 * @typedef {import("../model.js").Model} Model
 * @typedef {import("../model.js").Attribute} Attribute
 * @typedef {import("./comparison.js").Known} Known
 * @typedef {{key: string, text: string, gone: boolean}} Item  Something that a value names, and whether it is gone.
 */

/** Whether an attribute holds components. @param {Attribute} attribute */
export const holdsComponents = ({ type }) => type === "component" || type === "dynamiczone";

/** A value that may be a list as one. @param {any} value @returns {any[]} */
export const listOf = (value) => (isEmpty(value) ? [] : Array.isArray(value) ? value : [value]);

/**
 * The component that an item of an attribute is.
 * @param {Model} model
 * @param {Attribute} attribute
 * @param {any} item
 */
export function componentOf(model, attribute, item) {
  return model.components[item.__component ?? attribute.component] ?? { label: "Component", attributes: {} };
}

/**
 * The documents or files that a value names; null where an attribute names none.
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
 * A value as text: what is written as it is, JSON as lines.
 * @param {Attribute} attribute
 * @param {any} value
 */
export function textOf({ type }, value) {
  if (isEmpty(value)) return "";
  if (type === "boolean") return value ? "Yes" : "No";
  if (type === "date") return day(value);
  if (type === "datetime" || type === "timestamp") return timestamp(value);
  return typeof value === "object" && type !== "decimal" ? writeJson(value, 2) : String(value);
}

/** The words of a rich text made of blocks, each on a line of its own. @param {any} blocks @returns {string} */
export function wordsOfBlocks(blocks) {
  /** @param {any} node @returns {string} */
  const words = (node) => node.text ?? (node.children ?? []).map(words).join("");
  const lines = listOf(blocks).flatMap((block) => {
    if (block.type === "list") return (block.children ?? []).map((/** @type {any} */ item) => `• ${words(item)}`);
    if (block.type === "image") return [block.image?.alternativeText || block.image?.name || "Image"];
    return [words(block)];
  });
  return lines.join("\n");
}

/**
 * All that a component holds, a line for each of its attributes.
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
 * A value as a form holds it: without what is gone. Components that are in the form at the same place keep their
 * ids, and with them what of them is not shown here.
 * @param {Model} model
 * @param {Attribute} attribute
 * @param {any} value
 * @param {Known} known
 * @param {any} current  What the form holds.
 */
export function formValue(model, attribute, value, known, current) {
  const made = readValue(model, attribute, answered(model, attribute, value, known, current));
  if (!holdsComponents(attribute) || !Array.isArray(made)) return made;
  return made.map((item) => (item.id === undefined ? { ...item, __temp_key__: `restored-${++restored}` } : item));
}

let restored = 0; // components that were put into forms, which have no ids yet

/**
 * A value as the API answers it.
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
