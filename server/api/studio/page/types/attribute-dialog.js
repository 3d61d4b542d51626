/** The dialog that adds an attribute, or changes its name, type and options. It returns changes, and makes none. */

import { Dialog } from "../dialog.js";
import { html, useState } from "../vendor/preact.js";
import { Choice, Flag, Input } from "./inputs.js";

const SCALARS = [
  "string", "text", "richtext", "blocks", "enumeration", "uid", "email", "password", "integer", "biginteger", "float",
  "decimal", "date", "time", "datetime", "boolean", "json",
];
const TYPES = [...SCALARS, "relation", "component", "dynamiczone", "media"];
const RELATIONS = ["manyToOne", "oneToMany", "oneToOne", "manyToMany"];
const TEXT = ["string", "text", "richtext", "uid", "email", "password"];
const NUMBER = ["integer", "biginteger", "float", "decimal"];

/**
 * @typedef {import("./schemas.js").Schema} Schema
 * @typedef {import("./schemas.js").Attribute} Attribute
 * @typedef {Record<string, any>} Values
 */

/**
 * @param {{schema: Schema, schemas: Schema[], name: string, close: () => void,
 *   review: (changes: import("./schemas.js").Change[]) => void}} props  `name` is "" for a new attribute.
 */
export function AttributeDialog({ schema, schemas, name, close, review }) {
  const old = schema.attributes[name];
  const first = old ? valuesOf(old, name) : { name: "", type: "string" };
  const [values, setValues] = useState(/** @type {Values} */ (first));
  const set = (/** @type {Values} */ part) => setValues({ ...values, ...part });
  const title = old ? `Change ${name}` : `Add an attribute to ${schema.label}`;
  const changes = old ? changesOf(schema, name, old, values) : [addition(schema, values)];
  const input = { values, set };
  return html`<${Dialog} label=${title} close=${close}>
    <form class="stack" onSubmit=${(/** @type {Event} */ event) => {
      event.preventDefault();
      if (changes.length) review(changes);
    }}>
      <h2 class="dialog-title">${title}</h2>
      <${Input} ...${input} name="name" label="Name" required pattern="[A-Za-z_][A-Za-z0-9_\\-]*" autofocus />
      ${old ? html`<${Retype} old=${old} ...${input} />`
        : html`<${Choice} ...${input} name="type" label="Type" choices=${TYPES} />`}
      ${!old && html`<${Links} schemas=${schemas} ...${input} />`}
      <${Options} schema=${schema} old=${old} ...${input} />
      <div class="dialog-actions">
        <button class="button" type="button" onClick=${close}>Cancel</button>
        <button class="button primary" type="submit" disabled=${!changes.length}>Show the plan</button>
      </div>
    </form>
  <//>`;
}

/** @param {{old: Attribute, values: Values, set: (part: Values) => void}} props */
function Retype({ old, values, set }) {
  const choices = old.type === "relation" ? RELATIONS
    : old.type === "media" || old.type === "component" ? ["one", "many"]
    : SCALARS.filter((type) => type === old.type || type !== "password");
  if (old.type === "dynamiczone" || old.type === "password" || old.mappedBy) return null;
  // A type from a plugin or an old schema is not in the list.
  const all = [...new Set([wordOf(old), ...choices])];
  return html`<${Choice} values=${values} set=${set} name="word" label="Type" choices=${all} />`;
}

/**
 * The target of a new relation, or the components that a new attribute contains.
 * @param {{schemas: Schema[], values: Values, set: (part: Values) => void}} props
 */
function Links({ schemas, values, set }) {
  const input = { values, set };
  const types = schemas.filter(({ kind }) => kind !== "component").map(({ uid }) => uid);
  const components = schemas.filter(({ kind }) => kind === "component").map(({ uid }) => uid);
  if (values.type === "relation") {
    return html`<${Choice} ...${input} name="relation" label="Kind of relation" choices=${RELATIONS} />
      <${Choice} ...${input} name="target" label="Target" choices=${types} />
      <${Input} ...${input} name="inversedBy" label="Attribute on the other side"
        hint="Leave this empty if the target should not show the relation." />`;
  }
  if (values.type === "component") {
    return html`<${Choice} ...${input} name="component" label="Component" choices=${components} />
      <${Flag} ...${input} name="repeatable" label="List of components" />`;
  }
  if (values.type === "dynamiczone") {
    return html`<fieldset class="types-group"><legend class="field-label">Components</legend>
      ${components.map((uid) => html`<${Flag} key=${uid} values=${values.components ?? {}} name=${uid} label=${uid}
        set=${(/** @type {Values} */ part) => set({ components: { ...values.components, ...part } })} />`)}
    </fieldset>`;
  }
  return values.type === "media" && html`<${Flag} ...${input} name="multiple" label="Several files" />`;
}

/** @param {{schema: Schema, old?: Attribute, values: Values, set: (part: Values) => void}} props */
function Options({ schema, old, values, set }) {
  const input = { values, set };
  const type = typeOf(values);
  const isConverted = old !== undefined && old.type !== type;
  const mayLocalize = !old && schema.localized && type !== "relation" && type !== "uid";
  return html`
    ${type === "enumeration" && html`<${Input} ...${input} name="enum" label="Values, one a line" lines
      required=${!isConverted} hint=${isConverted ? "If this is empty, the values of all documents are used." : ""} />`}
    ${type === "uid" && html`<${Choice} ...${input} name="targetField" label="Derived from"
      choices=${["", ...Object.keys(schema.attributes)]} />`}
    ${TEXT.includes(type) && html`<${Input} ...${input} name="maxLength" label="Maximum length" type="number"
      min="1" />`}
    ${NUMBER.includes(type) && html`<${Input} ...${input} name="min" label="Minimum" type="number" step="any" />
      <${Input} ...${input} name="max" label="Maximum" type="number" step="any" />`}
    <${Flag} ...${input} name="required" label="Required" />
    ${SCALARS.includes(type) && html`<${Flag} ...${input} name="unique" label="Unique" />`}
    <${Flag} ...${input} name="private" label="Private" />
    ${mayLocalize && html`<${Flag} ...${input} name="localized" label="Another value in each locale" />`}`;
}

// --- values and changes ---------------------------------------------------------------------------

/** @param {Attribute} old @param {string} name @returns {Values} */
function valuesOf(old, name) {
  return { ...old, name, word: wordOf(old), enum: old.enum?.join("\n") ?? "", components: undefined };
}

/** Return the word that `retype` uses for the type of an attribute. @param {Attribute} attribute */
function wordOf({ type, relation, multiple, repeatable }) {
  if (type === "relation") return relation ?? "";
  if (type === "media" || type === "component") return multiple || repeatable ? "many" : "one";
  return type;
}

/** Return the type of the attribute after the changes. @param {Values} values @returns {string} */
const typeOf = (values) => (SCALARS.includes(values.word) ? values.word : values.type);

/** Return the options that the dialog can change. @param {Values} values @returns {Values} */
function optionsOf(values) {
  const type = typeOf(values);
  const number = (/** @type {any} */ text) => (text === "" || text == null ? null : Number(text));
  const lines = String(values.enum ?? "").split("\n").map((line) => line.trim()).filter(Boolean);
  return {
    ...(type === "enumeration" ? { enum: lines } : {}),
    ...(type === "uid" ? { targetField: values.targetField || null } : {}),
    ...(TEXT.includes(type) ? { maxLength: number(values.maxLength) } : {}),
    ...(NUMBER.includes(type) ? { min: number(values.min), max: number(values.max) } : {}),
    required: values.required || null,
    ...(SCALARS.includes(type) ? { unique: values.unique || null } : {}),
    private: values.private || null,
  };
}

/** @param {Schema} schema @param {Values} values @returns {import("./schemas.js").Change} */
function addition(schema, values) {
  const { type, relation = RELATIONS[0], target, inversedBy, component, repeatable, components, multiple } = values;
  const links = {
    relation: { relation, target, inversedBy: inversedBy || null },
    component: { component, repeatable: repeatable || null },
    dynamiczone: { components: Object.keys(components ?? {}).filter((uid) => components[uid]) },
    media: { multiple: multiple || null },
  }[/** @type {string} */ (type)];
  const i18n = values.localized ? { pluginOptions: { i18n: { localized: true } } } : {};
  const all = { type, ...links, ...optionsOf(values), ...i18n };
  const definition = Object.fromEntries(Object.entries(all).filter(([, value]) => value !== null));
  return { operation: "add", attribute: `${schema.name}.${values.name}`, definition };
}

/**
 * @param {Schema} schema @param {string} name @param {Attribute} old @param {Values} values
 * @returns {import("./schemas.js").Change[]}
 */
function changesOf(schema, name, old, values) {
  const attribute = `${schema.name}.${name}`;
  const before = optionsOf({ ...valuesOf(old, name), word: values.word });
  const isSame = (/** @type {string} */ key, /** @type {any} */ value) => {
    return JSON.stringify(before[key]) === JSON.stringify(value);
  };
  const options = Object.fromEntries(Object.entries(optionsOf(values)).filter(([key, value]) => !isSame(key, value)));
  return [
    ...(values.word === wordOf(old) ? [] : [{ operation: "retype", attribute, type: values.word }]),
    ...(Object.keys(options).length ? [{ operation: "options", attribute, options }] : []),
    ...(values.name === name ? [] : [{ operation: "rename", attribute, to: values.name }]),
  ];
}
