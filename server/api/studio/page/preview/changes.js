/**
 * Returns what was typed since the previewed page was last updated: each changed field with its new value, including
 * fields in components.
 */

import { Unparsed, isHidden, same } from "../form/values.js";

/**
 * Types whose values a page can't update without loading, because the form does not contain the related documents or
 * files.
 */
const ELSEWHERE = new Set(["relation", "media"]);

/**
 * @typedef {object} Change
 * @property {string} field  The path with dots, such as "blocks.0.title".
 * @property {any} value
 * @property {any} previous
 * @property {string} type
 */

/**
 * @param {import("../model.js").Model} model
 * @param {Record<string, import("../model.js").Attribute>} attributes
 * @param {any} before
 * @param {any} after
 * @param {string} [above]  The path of the component that contains the values, followed by a dot.
 * @returns {Change[]}
 */
export function changesBetween(model, attributes, before, after, above = "") {
  return Object.entries(attributes).flatMap(([name, attribute]) => {
    const [previous, value, field] = [before?.[name], after?.[name], above + name];
    if (ELSEWHERE.has(attribute.type) || isHidden(attribute) || value instanceof Unparsed) return [];
    if (same(previous, value)) return [];
    if (attribute.type !== "component" && attribute.type !== "dynamiczone") {
      return [{ field, value: value ?? null, previous: previous ?? null, type: attribute.type }];
    }
    if (!Array.isArray(value)) return value && previous ? within(model, attribute, previous, value, field) : [];
    // If entries were added, moved or removed, the page's entries no longer match. The page shows them after a save.
    const alike = value.length === previous?.length && value.every((item, at) => item.id === previous[at].id);
    return alike
      ? value.flatMap((item, at) => within(model, attribute, previous[at], item, `${field}.${at}`))
      : [];
  });
}

/**
 * @param {import("../model.js").Model} model
 * @param {import("../model.js").Attribute} attribute
 * @param {any} before
 * @param {any} after
 * @param {string} field
 */
function within(model, attribute, before, after, field) {
  const inner = model.components[after.__component ?? attribute.component]?.attributes ?? {};
  return changesBetween(model, inner, before, after, `${field}.`);
}
