/** The inputs for components and dynamic zones, which contain further fields. */

import { useStudio } from "../context.js";
import { Icon } from "../icons.js";
import { t } from "../language.js";
import { inSentence } from "../text.js";
import { html, useEffect, useState } from "../vendor/preact.js";
import { idOf } from "./field.js";
import { newComponent } from "./shape.js";
import { Sortable } from "./sortable.js";

const TEXTS = new Set(["string", "text", "richtext"]);
const LONGEST = 60; // characters of what a component is told by

/** @typedef {import("./field.js").InputProps & import("./field.js").Nesting} Props */

/** The input for a single component, which can be empty. @param {Props} props */
export function Component({ attribute, value, change, ...rest }) {
  const { model } = useStudio();
  const uid = attribute.component ?? "";
  if (!value) {
    const add = () => change(newComponent(model, uid, false));
    return html`<button class="button add" type="button" onClick=${add}><${Icon} name="plus" /> ${t`Add`}</button>`;
  }
  return html`<div class="component">
    <${Inside} ...${rest} uid=${uid} value=${value} change=${change} />
    ${!attribute.required && html`<button class="button quiet" type="button" onClick=${() => change(null)}>
      ${t`Remove ${inSentence(labelOf(model, uid))}`}</button>`}
  </div>`;
}

/** The input for a repeatable component. Its entries have an order. @param {Props} props */
export function Components(props) {
  const { model } = useStudio();
  const uid = props.attribute.component ?? "";
  const add = () => props.change([...(props.value ?? []), newComponent(model, uid, false)]);
  return html`<${Entries} ...${props} uidOf=${() => uid} />
    <button class="button add" type="button" onClick=${add}>
      <${Icon} name="plus" /> ${t`Add ${inSentence(labelOf(model, uid))}`}
    </button>`;
}

/** The input for a dynamic zone: components of several types, in an order. @param {Props} props */
export function Zone(props) {
  const { model } = useStudio();
  const add = (/** @type {string} */ uid) => props.change([...(props.value ?? []), newComponent(model, uid, true)]);
  return html`<${Entries} ...${props} uidOf=${(/** @type {any} */ item) => item.__component} />
    <div class="adds">
      ${(props.attribute.components ?? []).map((uid) => html`<button class="button add" type="button" key=${uid}
        onClick=${() => add(uid)}><${Icon} name="plus" /> ${labelOf(model, uid)}</button>`)}
    </div>`;
}

/** @param {Props & {uidOf: (item: any) => string}} props */
function Entries({ id, value, change, uidOf, ...rest }) {
  const { model } = useStudio();
  const items = value ?? [];
  const keyOf = (/** @type {any} */ item, /** @type {number} */ index) => item.__temp_key__ ?? item.id ?? index;
  const nameOf = (/** @type {any} */ item) => {
    return [labelOf(model, uidOf(item)), headline(model, uidOf(item), item)].filter(Boolean).join(": ");
  };
  return html`<${Sortable} ...${{ id, items, keyOf, nameOf, change }} kind="is-components">
    ${(/** @type {any} */ item, /** @type {number} */ index) => {
      const set = (/** @type {any} */ made) => change(items.with(index, made));
      return html`<${Entry} ...${rest} path=${[...rest.path, String(index)]} uid=${uidOf(item)} value=${item}
        change=${set} name=${nameOf(item)} />`;
    }}
  <//>`;
}

/**
 * One of several components, which can be collapsed. It is initially open if it is new or contains an error.
 * @param {import("./field.js").Nesting & {uid: string, value: any, change: (value: any) => void, name: string}} props
 */
function Entry({ name, ...props }) {
  const wrong = Object.keys(props.errors).some((path) => path.startsWith(`${props.path.join(".")}.`));
  const [open, set] = useState(props.value.id === undefined);
  useEffect(() => {
    if (wrong) set(true);
  }, [wrong]);
  const toggle = (/** @type {Event} */ e) => set(/** @type {HTMLDetailsElement} */ (e.currentTarget).open);
  return html`<details class="entry" id=${`${idOf(props.path)}-entry`} open=${open} onToggle=${toggle}>
    <summary class="entry-name">${name}</summary>
    ${open && html`<${Inside} ...${props} />`}
  </details>`;
}

/**
 * The fields of a component.
 * @param {import("./field.js").Nesting & {uid: string, value: any, change: (value: any) => void}} props
 */
function Inside({ uid, value, change, path, errors, field, isNew }) {
  const { model } = useStudio();
  const attributes = model.components[uid]?.attributes ?? {};
  const set = (/** @type {string} */ name, /** @type {any} */ made) => change({ ...value, [name]: made });
  return html`<div class="inside">
    ${Object.entries(attributes).map(([name, attribute]) => html`<${field} key=${name} name=${name} change=${set}
      path=${[...path, name]} attribute=${attribute} value=${value[name]} siblings=${value} errors=${errors}
      isNew=${isNew || value.id === undefined} />`)}
  </div>`;
}

/** @param {import("../model.js").Model} model @param {string} uid */
const labelOf = (model, uid) => model.components[uid]?.label ?? uid;

/**
 * Return the headline of a component: the first text in it.
 * @param {import("../model.js").Model} model
 * @param {string} uid
 * @param {any} item
 */
function headline(model, uid, item) {
  const texts = Object.entries(model.components[uid]?.attributes ?? {}).filter(([, { type }]) => TEXTS.has(type));
  const text = texts.map(([name]) => item[name]).find((one) => typeof one === "string" && one) ?? "";
  return text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text;
}
