/** The dialogs that create or rename a content type or component. They return changes, and make none. */

import { Buttons, Dialog } from "../dialog.js";
import { t } from "../language.js";
import { html, useState } from "../vendor/preact.js";
import { Choice, Flag, Input } from "./inputs.js";
import { KINDS } from "./schemas.js";

const ID = "[A-Za-z][A-Za-z0-9]*([\\-_][A-Za-z0-9]+)*";
const UID = `${ID}\\.${ID}`;

/**
 * @typedef {(changes: import("./schemas.js").Change[], values: Values) => void} Review  Also gets the filled form, to
 *   which the user can return.
 * @typedef {Record<string, any>} Values
 */

/** @param {{typed?: Values, close: () => void, review: Review}} props */
export function NewType({ typed, close, review }) {
  const [values, setValues] = useState(/** @type {Values} */ (typed ?? { kind: "collectionType" }));
  const input = { values, set: (/** @type {Values} */ part) => setValues({ ...values, ...part }) };
  const { type, plural, kind, display, drafts = false, localized = false } = values;
  const change = { operation: "add-type", type, plural: plural || `${type}s`, kind, drafts, localized };
  return html`<${Form} title=${t`New content type`} close=${close}
    submit=${() => review([display ? { ...change, display } : change], values)}>
    <${Input} ...${input} name="type" label=${t`Name of one document`} required pattern=${ID} autofocus
      hint=${t`In URLs and schemas, such as article`} />
    <${Input} ...${input} name="plural" label=${t`Name of several documents`} pattern=${ID}
      hint=${`${type || "article"}s`} />
    <${Input} ...${input} name="display" label=${t`Display name`} />
    <${Choice} ...${input} name="kind" label=${t`Kind`} choices=${["collectionType", "singleType"]}
      labels=${KINDS} />
    <${Flag} ...${input} name="drafts" label=${t`Documents can have drafts`} />
    <${Flag} ...${input} name="localized" label=${t`Documents can be translated`} />
  <//>`;
}

/** @param {{schemas: import("./schemas.js").Schema[], typed?: Values, close: () => void, review: Review}} props */
export function NewComponent({ schemas, typed, close, review }) {
  const [values, setValues] = useState(/** @type {Values} */ (typed ?? {}));
  const input = { values, set: (/** @type {Values} */ part) => setValues({ ...values, ...part }) };
  const { category, component, display } = values;
  const change = { operation: "add-component", component: `${category}.${component}` };
  const known = schemas.filter(({ kind }) => kind === "component").map(({ name }) => name.split(".")[0]);
  return html`<${Form} title=${t`New component`} close=${close}
    submit=${() => review([display ? { ...change, display } : change], values)}>
    <${Input} ...${input} name="category" label=${t`Category`} required pattern=${ID} autofocus list="types-categories"
      hint=${t`The folder of the component, such as shared`} />
    <datalist id="types-categories">${[...new Set(known)].map((name) => html`<option key=${name} value=${name} />`)}
    </datalist>
    <${Input} ...${input} name="component" label=${t`Name`} required pattern=${ID}
      hint=${t`In schemas, such as seo`} />
    <${Input} ...${input} name="display" label=${t`Display name`} />
  <//>`;
}

/** @param {{schema: import("./schemas.js").Schema, typed?: Values, close: () => void, review: Review}} props */
export function SchemaOptions({ schema, typed, close, review }) {
  const { name, label, drafts, localized, kind } = schema;
  const first = { display: label, drafts, localized };
  const [values, setValues] = useState(/** @type {Values} */ (typed ?? first));
  const input = { values, set: (/** @type {Values} */ part) => setValues({ ...values, ...part }) };
  const changed = Object.entries(values).filter(([key, value]) => value !== first[/** @type {"display"} */ (key)]);
  const change = { operation: "type-options", type: name, ...Object.fromEntries(changed) };
  return html`<${Form} title=${t`Options of ${label}`} close=${close} disabled=${!changed.length}
    submit=${() => review([change], values)}>
    <${Input} ...${input} name="display" label=${t`Display name`} required autofocus />
    ${kind !== "component" && html`
      <${Flag} ...${input} name="drafts" label=${t`Documents can have drafts`} />
      <${Flag} ...${input} name="localized" label=${t`Documents can be translated`} />`}
    ${kind !== "component" && html`<p class="hint">
      ${t`The kind, collection or single document, can't be changed, because it decides which files belong to the
        type.`}</p>`}
  <//>`;
}

/** @param {{schema: import("./schemas.js").Schema, typed?: Values, close: () => void, review: Review}} props */
export function RenameSchema({ schema, typed, close, review }) {
  const first = { to: schema.name, plural: schema.plural };
  const [values, setValues] = useState(/** @type {Values} */ (typed ?? first));
  const input = { values, set: (/** @type {Values} */ part) => setValues({ ...values, ...part }) };
  const isComponent = schema.kind === "component";
  const change = isComponent
    ? { operation: "rename-component", component: schema.name, to: values.to }
    : { operation: "rename-type", type: schema.name, to: values.to, plural: values.plural };
  return html`<${Form} title=${t`Rename ${schema.label}`} close=${close} submit=${() => review([change], values)}>
    <${Input} ...${input} name="to" label=${isComponent ? t`Category and name` : t`Name of one document`} required
      pattern=${isComponent ? UID : ID} autofocus />
    ${!isComponent && html`<${Input} ...${input} name="plural" label=${t`Name of several documents`} required
      pattern=${ID} />`}
  <//>`;
}

/** @param {{title: string, close: () => void, submit: () => void, disabled?: boolean, children?: any}} props */
function Form({ title, close, submit, disabled = false, children }) {
  return html`<${Dialog} label=${title} close=${close}>
    <form class="stack" onSubmit=${(/** @type {Event} */ event) => {
      event.preventDefault();
      submit();
    }}>
      <h2 class="dialog-title">${title}</h2>
      ${children}
      <${Buttons} close=${close} label=${t`Show the plan`} disabled=${disabled} />
    </form>
  <//>`;
}
