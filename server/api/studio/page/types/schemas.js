/** The schemas of the site, as content types and components, and requests that change them. */

import { ask } from "../api.js";
import { plural, t } from "../language.js";
import { UNDOABLE } from "../undo/undo.js";

const CHANGES = "api/content-type-builder/changes";

/**
 * @typedef {import("../model.js").Attribute & {inversedBy?: string, unique?: boolean, deprecated?: any}} Attribute
 * @typedef {{operation: string, [argument: string]: any}} Change
 */

/**
 * @typedef {object} Schema
 * @property {string} uid
 * @property {string} name  The name in changes: the singular API id, or the uid of a component.
 * @property {string} plural
 * @property {string} label
 * @property {"collectionType" | "singleType" | "component"} kind
 * @property {boolean} localized
 * @property {boolean} drafts
 * @property {Record<string, Attribute>} attributes
 */

/**
 * @typedef {object} Step  What one change does.
 * @property {string} change
 * @property {number} documents
 * @property {string[]} files
 * @property {string[]} notes
 * @property {string[]} warnings
 * @property {string[]} losses
 * @property {number} lost
 */

/**
 * @typedef {object} Plan
 * @property {Step[]} changes
 * @property {import("../file/changes.js").FileChange[]} files
 * @property {number} total
 * @property {string} etag
 */

/** Return all content types and components of the site. @param {AbortSignal} signal @returns {Promise<Schema[]>} */
export async function loadSchemas(signal) {
  const [types, components] = await Promise.all([
    ask("api/content-type-builder/content-types", { signal }),
    ask("api/content-type-builder/components", { signal }),
  ]);
  const own = types.data.filter((/** @type {any} */ { uid }) => uid.startsWith("api::")).map(typeOf);
  return [...own, ...components.data.map(componentOf)];
}

/** @param {any} described @returns {Schema} */
function typeOf({ uid, schema }) {
  return {
    uid,
    name: schema.singularName,
    plural: schema.pluralName,
    label: schema.displayName,
    kind: schema.kind,
    localized: schema.pluginOptions?.i18n?.localized === true,
    drafts: schema.draftAndPublish,
    attributes: schema.attributes,
  };
}

/** @param {any} described @returns {Schema} */
function componentOf({ uid, schema }) {
  const none = { plural: "", localized: false, drafts: false };
  return { uid, name: uid, label: schema.displayName, kind: "component", attributes: schema.attributes, ...none };
}

/** Return what changes would do. @param {Change[]} changes @returns {Promise<Plan>} */
export async function planChanges(changes) {
  const answer = await ask(CHANGES, { method: "POST", query: { dryRun: "true" }, body: { data: { changes } } });
  return { ...answer.data, etag: answer.etag };
}

/**
 * Make the changes of a plan. Return the id with which they can be undone, or "" if they can't be undone.
 * @param {Change[]} changes
 * @param {Plan} plan
 * @param {boolean} lossy
 */
export async function makeChanges(changes, plan, lossy) {
  const headers = { ...UNDOABLE, "If-Match": plan.etag };
  return (await ask(CHANGES, { method: "POST", headers, body: { data: { changes, lossy } } })).undo;
}

/** Return the name of the schema in the full name of an attribute. @param {string} attribute */
const ownerOf = (attribute) => attribute.slice(0, attribute.lastIndexOf("."));

/** Return what changes to one attribute or type have done. @param {Change[]} changes */
export function doneText(changes) {
  const { operation, attribute, type, component, to } = changes[changes.length - 1];
  const name = attribute ?? type ?? component;
  if (changes.length > 1 && operation !== "delete-type") return t`${type ?? ownerOf(attribute)} was changed.`;
  if (operation === "reorder") return t`The order of ${name} was changed.`;
  if (operation.startsWith("add")) return t`${name} was created.`;
  if (operation.startsWith("delete") || operation === "drop") return t`${name} was deleted.`;
  return operation.startsWith("rename") ? t`${name} was renamed to ${to}.` : t`${name} was changed.`;
}

/**
 * Return the changes that delete a content type or component. The relations that lead to a type are deleted first.
 * @param {Schema} schema
 * @param {Schema[]} schemas
 * @returns {Change[]}
 */
export function deletionOf(schema, schemas) {
  if (schema.kind === "component") return [{ operation: "delete-component", component: schema.name }];
  const { attributes, name, uid } = schema;
  // The stored side of a relation can be deleted only after the other side.
  const own = Object.keys(attributes).filter((key) => attributes[key].mappedBy && attributes[key].target !== uid);
  const others = schemas.filter((other) => other !== schema).flatMap((other) => Object.keys(other.attributes)
    .filter((key) => other.attributes[key].target === uid).map((key) => `${other.name}.${key}`));
  const dropped = [...own.map((key) => `${name}.${key}`), ...others];
  return [
    ...dropped.map((attribute) => ({ operation: "drop", attribute })),
    { operation: "delete-type", type: name },
  ];
}

export const KINDS = { collectionType: t`collection`, singleType: t`single document`, component: t`component` };

/** @type {Record<string, string>} */
export const RELATION_WORDS = {
  manyToOne: t`many to one`,
  oneToMany: t`one to many`,
  oneToOne: t`one to one`,
  manyToMany: t`many to many`,
};

/** The types of attributes in plain words. @type {Record<string, string>} */
export const TYPE_WORDS = {
  string: t`short text`,
  text: t`long text`,
  richtext: t`Markdown text`,
  blocks: t`formatted text`,
  enumeration: t`choice`,
  uid: t`part of a URL`,
  email: t`e-mail address`,
  password: t`password`,
  integer: t`whole number`,
  biginteger: t`large whole number`,
  float: t`decimal number`,
  decimal: t`exact decimal number`,
  date: t`date`,
  time: t`time`,
  datetime: t`date and time`,
  boolean: t`yes or no`,
  relation: t`relation`,
  component: t`component`,
  dynamiczone: t`different components`,
  media: t`media`,
  one: t`one`,
  many: t`several`,
  ...RELATION_WORDS,
};

/** @param {string} [relation] */
export const relationText = (relation = "") => RELATION_WORDS[relation] ?? relation;

/** @param {import("../model.js").Model} model */
export function mayChangeTypes(model) {
  const may = model.mayServed("content-type", "write") && model.maySite("source", "read");
  return may && !model.isPast && (model.version.branch === "" || model.mayBranch("update"));
}

/** Return a description of an attribute, such as "string, required". @param {Attribute} attribute */
export function describe(attribute) {
  const { type, relation, target, component, components, multiple, repeatable, maxLength, pluginOptions } = attribute;
  const kind = {
    relation: target ? t`relation to ${shortName(target)} (${relationText(relation)})`
      : t`relation (${relationText(relation)})`,
    component: repeatable ? t`list of components ${component}` : t`component ${component}`,
    dynamiczone: t`dynamic zone of ${components?.join(", ")}`,
    media: multiple ? t`media files` : t`media file`,
    enumeration: t`one of ${attribute.enum?.join(", ")}`,
  }[type] ?? TYPE_WORDS[type] ?? type;
  const more = [
    ...(attribute.required ? [t`required`] : []),
    ...(attribute.unique ? [t`unique`] : []),
    ...(attribute.private ? [t`private`] : []),
    ...(pluginOptions?.i18n?.localized ? [t`localized`] : []),
    ...(maxLength ? [plural(maxLength, { one: "at most {0} character", other: "at most {0} characters" })] : []),
  ];
  return [kind, ...more].join(", ");
}

/** Return the API id in the uid of a content type. @param {string} uid */
export const shortName = (uid) => (uid.startsWith("api::") ? uid.split(".").at(-1) ?? uid : uid);
