/** The dialog that adds an attribute, or changes its name, type and options. It returns values, and saves none. */

import { Buttons, Dialog } from "../dialog.js";
import { t } from "../language.js";
import { html, useState } from "../vendor/preact.js";
import {
  RELATIONS, SCALARS, defaultInputOf, namingAttributesOf, optionNamesOf, typeOf, wordOf,
} from "./attribute-changes.js";
import { Choice, Flag, Input } from "./inputs.js";
import { RELATION_WORDS, TYPE_WORDS, shortName } from "./schemas.js";
import { takenText } from "./unsaved-changes.js";

const TYPES = [...SCALARS, "relation", "component", "dynamiczone", "media"];

/**
 * @typedef {import("./schemas.js").Schema} Schema
 * @typedef {import("./attribute-changes.js").Attribute} Attribute
 * @typedef {import("./attribute-changes.js").Values} Values
 * @typedef {import("./unsaved-changes.js").Row} Row
 */

/**
 * @param {{schema: Schema, schemas: Schema[], rows: Row[], row?: Row, close: () => void,
 *   save: (values: Values) => void}} props  `schema` has the changes that are not saved. Without a `row`, the dialog
 *   adds an attribute.
 */
export function AttributeDialog({ schema, schemas, rows, row, close, save }) {
  const old = row?.old;
  const [values, setValues] = useState(/** @type {Values} */ (row?.values ?? { name: "", type: "string" }));
  const set = (/** @type {Values} */ part) => setValues({ ...values, ...part });
  const title = row ? t`Change ${row.name}` : t`Add an attribute to ${schema.label}`;
  const isTaken = rows.some(({ key, name }) => name === values.name && key !== row?.key);
  const input = { values, set };
  return html`<${Dialog} label=${title} close=${close}>
    <form class="stack" onSubmit=${(/** @type {Event} */ event) => {
      event.preventDefault();
      save(values);
    }}>
      <h2 class="dialog-title">${title}</h2>
      <${Input} ...${input} name="name" label=${t`Name`} required pattern="[A-Za-z_][A-Za-z0-9_\\-]*" autofocus
        wrong=${isTaken ? takenText(values.name) : ""} />
      ${old ? html`<${Retype} schema=${schema} old=${old} ...${input} />`
        : html`<${Choice} ...${input} name="type" label=${t`Type`} choices=${TYPES}
          labels=${TYPE_WORDS} />`}
      ${!old && html`<${Links} schemas=${schemas} ...${input} />`}
      <${Options} ...${{ schema, schemas, rows, old }} ...${input} />
      <${Buttons} close=${close} label=${row ? t`Change` : t`Add`} />
    </form>
  <//>`;
}

/**
 * The types to which an attribute can be converted, and what can't be changed.
 * @param {{schema: Schema, old: Attribute, values: Values, set: (part: Values) => void}} props
 */
function Retype({ schema, old, values, set }) {
  const choices = old.type === "relation" ? RELATIONS
    : old.type === "media" || old.type === "component" ? ["one", "many"]
    : SCALARS.filter((type) => type === old.type || type !== "password");
  const isFixed = old.type === "dynamiczone" || old.type === "password" || old.mappedBy;
  // A type from a plugin or an old schema is not in the list.
  const all = [...new Set([wordOf(old), ...choices])];
  const fixed = fixedParts(schema, old);
  return html`${!isFixed && html`<${Choice} values=${values} set=${set} name="word" label=${t`Type`} choices=${all}
    labels=${TYPE_WORDS} />`}
    ${fixed.length > 0 && html`<div class="types-fixed">
      ${fixed.map((text) => html`<p class="hint" key=${text}>${text}</p>`)}</div>`}`;
}

/**
 * Return a sentence for each part of an attribute that can't be changed.
 * @param {Schema} schema
 * @param {Attribute} old
 */
function fixedParts(schema, old) {
  const target = shortName(old.target ?? "");
  const { type, mappedBy, component } = old;
  return [
    ...(type === "relation" && target
      ? [t`The target ${target} can't be changed, because documents refer to it. Add another relation, and delete this
        one.`]
      : []),
    ...(mappedBy ? [t`The kind of relation is set by the other side, ${target}.${mappedBy}. Change it there.`] : []),
    ...(type === "component"
      ? [t`The component ${component} can't be changed, because values belong to it. Add another attribute, and delete
        this one.`]
      : []),
    ...(type === "dynamiczone"
      ? [t`A dynamic zone can't become another type, because each entry has its own component.`] : []),
    ...(type === "password" ? [t`A password can't become another type, because only its hash is stored.`] : []),
    ...(schema.localized && (type === "relation" || type === "uid")
      ? [t`Attributes of this type always have another value in each locale.`] : []),
  ];
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
    return html`<${Choice} ...${input} name="relation" label=${t`Kind of relation`} choices=${RELATIONS}
        labels=${RELATION_WORDS} />
      <${Choice} ...${input} name="target" label=${t`Target`} choices=${types} />
      <${Input} ...${input} name="inversedBy" label=${t`Attribute on the other side`}
        hint=${t`Leave this empty if the target should not show the relation.`} />`;
  }
  if (values.type === "component") {
    return html`<${Choice} ...${input} name="component" label=${t`Component`} choices=${components} />
      <${Flag} ...${input} name="repeatable" label=${t`List of components`} />`;
  }
  return values.type === "media" && html`<${Flag} ...${input} name="multiple" label=${t`Several files`} />`;
}

/**
 * @param {{schema: Schema, schemas: Schema[], rows: Row[], old?: Attribute, values: Values,
 *   set: (part: Values) => void}} props
 */
function Options({ schema, schemas, rows, old, values, set }) {
  const input = { values, set };
  const type = typeOf(values);
  const isConverted = old !== undefined && old.type !== type;
  const mayLocalize = schema.localized && type !== "relation" && type !== "uid";
  const isCount = type === "dynamiczone" || type === "component";
  const ofNumber = { type: "number", ...(isCount ? { min: "0" } : { step: "any" }) };
  const least = values.min ? { min: values.min } : {};
  const lines = String(values.enum ?? "").split("\n").filter(Boolean);
  /** @type {Record<string, any>} */
  const shown = {
    components: html`<${Components} schemas=${schemas} ...${input} />`,
    enum: html`<${Input} ...${input} name="enum" label=${t`Values, one a line`} lines required=${!isConverted}
      hint=${isConverted ? t`If this is empty, the values of all documents are used.` : ""} />`,
    targetField: html`<${Choice} ...${input} name="targetField" label=${t`Derived from`}
      labels=${{ "": t`No attribute`, ...Object.fromEntries(rows.map(({ key, name }) => [key, name])) }}
      choices=${[...new Set(["", values.targetField ?? "", ...namingAttributesOf(schema)])]} />`,
    minLength: html`<${Input} ...${input} name="minLength" label=${t`Minimum length`} type="number" min="1" />`,
    maxLength: html`<${Input} ...${input} name="maxLength" label=${t`Maximum length`} type="number"
      min=${values.minLength || 1} />`,
    regex: html`<${Input} ...${input} name="regex" label=${t`Regular expression`}
      hint=${t`The whole text does not have to match. Use ^ and $ for this.`} />`,
    min: html`<${Input} ...${input} name="min" label=${t`Minimum`} ...${ofNumber} />`,
    max: html`<${Input} ...${input} name="max" label=${t`Maximum`} ...${ofNumber}
      ...${least} />`,
    default: type === "boolean" || type === "enumeration"
      ? html`<${Choice} ...${input} name="default" label=${t`Default`}
          choices=${["", ...(type === "boolean" ? ["true", "false"] : lines)]} />`
      : html`<${Input} ...${input} name="default" label=${t`Default`} ...${defaultInputOf(values)} />`,
    required: html`<${Flag} ...${input} name="required" label=${t`Required`} />`,
    unique: html`<${Flag} ...${input} name="unique" label=${t`Unique`} />`,
    private: html`<${Flag} ...${input} name="private" label=${t`Private`} />`,
  };
  return html`${optionNamesOf(values).map((name) => html`<div key=${name}>${shown[name]}</div>`)}
    ${mayLocalize && html`<${Flag} ...${input} name="localized" label=${t`Another value in each locale`} />`}`;
}

/** @param {{schemas: Schema[], values: Values, set: (part: Values) => void}} props */
function Components({ schemas, values, set }) {
  const components = schemas.filter(({ kind }) => kind === "component").map(({ uid }) => uid);
  return html`<fieldset class="types-group"><legend class="field-label">${t`Components`}</legend>
    ${components.map((uid) => html`<${Flag} key=${uid} values=${values.components ?? {}} name=${uid} label=${uid}
      set=${(/** @type {Values} */ part) => set({ components: { ...values.components, ...part } })} />`)}
  </fieldset>`;
}
