/**
 * Changes to the attributes of a schema that are not saved.
 *
 * They are stored as differences from the schema, by the present names of attributes. This way, later changes replace
 * or cancel earlier ones, and changes by others to the same schema stay.
 */

import { keep, placeOf, readKept } from "../form/unsaved.js";
import { t } from "../language.js";
import { useState } from "../vendor/preact.js";
import { changedAttribute, changedOptionsOf, definitionOf, valuesOf, wordOf } from "./attribute-changes.js";
import { describe } from "./schemas.js";

/**
 * @typedef {import("./schemas.js").Schema} Schema
 * @typedef {import("./schemas.js").Change} Change
 * @typedef {import("./attribute-changes.js").Attribute} Attribute
 * @typedef {import("./attribute-changes.js").Values} Values
 */

/**
 * @typedef {object} Unsaved
 * @property {Record<string, Values | null>} edits  By key: the changed values of an attribute, or null to delete it.
 *   The key of an attribute is its name in the schema; the key of a new one begins with +.
 * @property {string[]} order  The keys in their new order; empty if the order is unchanged.
 */

/**
 * @typedef {object} Row  An attribute with the changes.
 * @property {string} key
 * @property {string} name
 * @property {Attribute} [old]  The attribute in the schema; undefined for a new one.
 * @property {Values} values
 * @property {Attribute} attribute
 * @property {Values} options  The changed options.
 * @property {boolean} isRetyped
 * @property {boolean} isChanged
 */

/** @type {Unsaved} */
const NONE = { edits: {}, order: [] };

/** @param {string} key */
const isNew = (key) => key.startsWith("+");

/** @param {string} name */
export const takenText = (name) => t`There is already an attribute ${name}.`;

/**
 * Return the attributes of a schema with the changes, in their new order.
 * @param {Schema} schema @param {Unsaved} unsaved
 */
export function rowsOf(schema, { edits, order }) {
  const own = Object.keys(schema.attributes).filter((key) => edits[key] !== null);
  const present = [...own, ...Object.keys(edits).filter(isNew)];
  const keys = [...order.filter((key) => present.includes(key)), ...present.filter((key) => !order.includes(key))];
  return keys.map((key) => rowOf(schema, key, edits[key]));
}

/** @param {Schema} schema @param {string} key @param {Values | null} [edit] @returns {Row} */
function rowOf(schema, key, edit) {
  /** @type {Attribute | undefined} */
  const old = schema.attributes[key];
  const values = { ...(old && valuesOf(old, key)), ...edit };
  const options = old ? changedOptionsOf(old, values) : {};
  const isRetyped = old !== undefined && values.word !== wordOf(old);
  const isChanged = isRetyped || values.name !== key || Object.keys(options).length > 0;
  const attribute = !old ? definitionOf(values) : isChanged ? changedAttribute(old, values) : old;
  return { key, name: values.name, old, values, attribute, options, isRetyped, isChanged };
}

/** @param {Schema} schema @param {Unsaved} unsaved */
function isReordered(schema, unsaved) {
  const keys = (/** @type {Unsaved} */ state) => rowsOf(schema, state).map(({ key }) => key).join();
  return keys(unsaved) !== keys({ ...unsaved, order: [] });
}

/**
 * Return a line for each change that can be taken back. The change of the order has the key "".
 * @param {Schema} schema
 * @param {Unsaved} unsaved
 * @returns {{key: string, text: string, hint?: string}[]}
 */
function linesOf(schema, unsaved) {
  const rows = rowsOf(schema, unsaved);
  const lines = Object.entries(unsaved.edits).flatMap(([key, edit]) => {
    const row = rows.find((one) => one.key === key);
    if (row) {
      const { name, old, attribute, isChanged } = row;
      const text = !old ? t`Add ${name}` : name === key ? t`Change ${key}` : t`Rename ${key} to ${name}`;
      return isChanged ? [{ key, text, hint: describe(attribute) }] : [];
    }
    if (schema.attributes[key]) return [{ key, text: t`Delete ${key}` }];
    const hint = Object.entries(edit ?? {}).map((pair) => pair.join(": ")).join(", ");
    return hint ? [{ key, text: t`${key} no longer exists`, hint }] : [];
  });
  return isReordered(schema, unsaved) ? [...lines, { key: "", text: t`Change the order` }] : lines;
}

/**
 * Keep the changes to a schema in the browser.
 * @param {import("../model.js").Model} model
 * @param {Schema} schema
 */
export function useUnsavedChanges(model, schema) {
  const now = JSON.stringify(schema.attributes);
  const place = placeOf(model, /** @type {any} */ (schema), "-types", model.version.branch);
  const [{ seen, unsaved }, set] = useState(() => {
    const kept = readKept(place);
    return { seen: kept?.etag ?? now, unsaved: /** @type {Unsaved} */ ({ ...NONE, ...kept?.values }) };
  });
  const lines = linesOf(schema, unsaved);
  const rows = rowsOf(schema, unsaved);
  const { edits, order } = unsaved;
  const update = (/** @type {Partial<Unsaved>} */ part) => {
    const next = { ...unsaved, ...part };
    const values = linesOf(schema, next).length ? next : NONE;
    const etag = lines.length ? seen : now;
    keep(place, { etag, base: NONE, values, lost: {} });
    set({ seen: etag, unsaved: values });
  };
  /** @param {string} key */
  const without = (key) => Object.fromEntries(Object.entries(edits).filter(([other]) => other !== key).map(
    ([other, edit]) => [other, isNew(key) && edit?.targetField === key ? { ...edit, targetField: "" } : edit]));
  return {
    lines,
    rows,
    changes: changesOf(schema, unsaved, rows),
    isOutdated: seen !== now,
    /** Change an attribute, or add one. @param {string} key @param {Values} values */
    save: (key, values) => {
      const old = schema.attributes[key];
      const first = old ? valuesOf(old, key) : {};
      const isEdited = (/** @type {string} */ name) => JSON.stringify(values[name]) !== JSON.stringify(first[name]);
      const edit = Object.fromEntries(Object.entries(values).filter(([name]) => isEdited(name)));
      update({ edits: { ...edits, [key || newKey(edits)]: edit } });
    },
    /** Move or delete attributes. @param {string[]} keys  The keys of those that stay, in their new order. */
    arrange: (keys) => {
      const removed = rows.find(({ key }) => !keys.includes(key));
      if (!removed) return update({ order: keys });
      return update({ edits: isNew(removed.key) ? without(removed.key) : { ...edits, [removed.key]: null } });
    },
    /** Take back a change. Return an error message if its attribute would have the name of another one. */
    takeBack: (/** @type {string} */ key) => {
      const next = key ? { edits: without(key), order } : { edits, order: [] };
      const names = rowsOf(schema, next).map(({ name }) => name);
      const taken = names.find((name, index) => names.includes(name, index + 1));
      if (taken) return takenText(taken);
      update(next);
      return "";
    },
    discard: () => update(NONE),
  };
}

/** @param {Unsaved["edits"]} edits */
const newKey = (edits) => `+${1 + Math.max(0, ...Object.keys(edits).filter(isNew).map(Number))}`;

/**
 * Return the changes in an order in which each of them is possible.
 * @param {Schema} schema
 * @param {Unsaved} unsaved
 * @param {Row[]} rows
 * @returns {Change[]}
 */
function changesOf({ name: type, uid, attributes }, { edits }, rows) {
  const nameOf = (/** @type {string} */ key) => rows.find((row) => row.key === key)?.name ?? key;
  const withName = (/** @type {Values} */ values) => {
    return values.targetField ? { ...values, targetField: nameOf(values.targetField) } : values;
  };
  const change = (/** @type {string} */ operation, /** @type {string} */ name, more = {}) => {
    return { operation, attribute: `${type}.${name}`, ...more };
  };
  // The uid of another attribute, and the other side of a relation, can't stay without what they refer to.
  const refers = (/** @type {string} */ key) => (attributes[key].targetField || attributes[key].mappedBy ? 1 : 0);
  const isFirst = (/** @type {string} */ a, /** @type {string} */ b) => refers(b) - refers(a);
  const own = rows.filter(({ old }) => old);
  const dropped = Object.keys(attributes).filter((key) => edits[key] === null).sort(isFirst);
  const retyped = own.filter(({ isRetyped }) => isRetyped).map(({ key }) => key).sort(isFirst);
  const gone = [...dropped, ...retyped];
  const released = own.filter(({ old, options }) => "targetField" in options && gone.includes(old?.targetField ?? ""));
  const isUid = (/** @type {Row} */ { values }) => (values.type === "uid" ? 1 : 0);
  const added = rows.filter(({ old }) => !old).sort((a, b) => isUid(a) - isUid(b));
  /** The other side of a relation of the schema with itself is added, too. @param {Row} row */
  const namesOf = ({ name, old, attribute: { target, inversedBy } }) => {
    return !old && inversedBy && target === uid ? [name, inversedBy] : [name];
  };
  const kept = Object.keys(attributes).filter((key) => edits[key] !== null).map(nameOf);
  const names = rows.flatMap(namesOf);
  return [
    ...released.map(({ key }) => change("options", key, { options: { targetField: null } })),
    ...retyped.map((key) => change("retype", key, { type: rows.find((row) => row.key === key)?.values.word })),
    ...dropped.map((key) => change("drop", key)),
    ...renames(own).map(([name, to]) => change("rename", name, { to })),
    ...added.map(({ name, values }) => change("add", name, { definition: definitionOf(withName(values)) })),
    ...own.filter(({ options }) => Object.keys(options).length).map(({ name, options }) => {
      return change("options", name, { options: withName(options) });
    }),
    ...(names.join() === [...kept, ...added.flatMap(namesOf)].join() ? []
      : [{ operation: "reorder", type, attributes: names }]),
  ];
}

/**
 * Return the old and new names in an order in which each new name is free. If attributes swap their names, one of them
 * gets another name first.
 * @param {Row[]} rows
 */
function renames(rows) {
  const open = new Map(rows.filter(({ key, name }) => name !== key).map(({ key, name }) => [key, name]));
  /** @type {[string, string][]} */
  const done = [];
  while (open.size) {
    const [name, to] = [...open].find(([, wanted]) => !open.has(wanted)) ?? [...open][0];
    open.delete(name);
    const isTaken = open.has(to);
    const free = isTaken ? `${name}_${to}_` : to;
    if (isTaken) open.set(free, to);
    done.push([name, free]);
  }
  return done;
}
