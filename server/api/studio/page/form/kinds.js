/** The table of attribute types, with the input and hint of each type. */

import { Blocks } from "../blocks/blocks-input.js";
import { MarkdownInput } from "../editor/markdown-input.js";
import { t } from "../language.js";
import { AnyRelation } from "./any-relation.js";
import { Component, Components, Zone } from "./component-input.js";
import { Choice, Email, Json, Line, Lines, Numeric, Password, Temporal, YesNo } from "./inputs.js";
import { MediaInput } from "./media-input.js";
import { Relation } from "./relation-input.js";
import { Slug } from "./slug-input.js";
import { isList } from "./shape.js";
import { ZONE } from "./times.js";

/** @typedef {import("../model.js").Attribute} Attribute */

/**
 * @typedef {object} Kind
 * @property {any} input
 * @property {string} [hint]
 * @property {boolean} [group]  Whether the input consists of several elements.
 */

/** @type {Record<string, Kind>} */
const KINDS = {
  string: { input: Line },
  text: { input: Lines },
  richtext: { input: MarkdownInput, hint: "Markdown" },
  blocks: { input: Blocks },
  enumeration: { input: Choice },
  email: { input: Email },
  password: { input: Password },
  uid: { input: Slug },
  date: { input: Temporal },
  time: { input: Temporal },
  datetime: { input: Temporal, hint: t`In your time zone, ${ZONE}` },
  timestamp: { input: Temporal, hint: t`In your time zone, ${ZONE}` },
  integer: { input: Numeric },
  biginteger: { input: Numeric },
  float: { input: Numeric },
  decimal: { input: Numeric },
  boolean: { input: YesNo, group: true },
  array: { input: Json, hint: t`A list, as JSON` },
  json: { input: Json, hint: "JSON" },
  relation: { input: Relation },
  media: { input: MediaInput, group: true },
  component: { input: Component, group: true },
  dynamiczone: { input: Zone, group: true },
};
/** @type {Kind} */
const ANY_TYPE = { input: AnyRelation, group: true };
/** @type {Kind} */
const COMPONENTS = { input: Components, group: true };

/**
 * Return the kind of input for an attribute, or undefined if there is none.
 * @param {Attribute} attribute
 * @returns {Kind | undefined}
 */
export function kindOf(attribute) {
  return special(attribute) ?? KINDS[attribute.type];
}

/** Return the kind of input if it depends on more than the attribute's type. @param {Attribute} attribute */
function special({ type, repeatable, target }) {
  if (type === "relation" && !target) return ANY_TYPE;
  return type === "component" && repeatable ? COMPONENTS : undefined;
}

/**
 * Return the hint below an input: the description in the schema, and the limits in the attribute's options.
 * @param {Attribute} attribute
 */
export function hintOf(attribute) {
  const { min, max, minLength, maxLength } = attribute;
  const length = range(minLength, maxLength);
  const some = isList(attribute) && range(min, max);
  const bounds = some ? t`${some} entries` : range(min, max);
  return [kindOf(attribute)?.hint, length && t`${length} characters`, bounds].filter(Boolean).join(" · ");
}

/** @param {number | string | undefined} least @param {number | string | undefined} most */
function range(least, most) {
  if (least !== undefined && most !== undefined) return t`${least} to ${most}`;
  if (most !== undefined) return t`At most ${most}`;
  return least === undefined ? "" : t`At least ${least}`;
}
