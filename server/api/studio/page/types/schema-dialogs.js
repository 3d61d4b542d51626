/** The dialogs that create or rename a content type or component. They return changes, and make none. */

import { Dialog } from "../dialog.js";
import { html, useState } from "../vendor/preact.js";
import { Choice, Flag, Input } from "./inputs.js";

const ID = "[A-Za-z][A-Za-z0-9]*([\\-_][A-Za-z0-9]+)*";
const UID = `${ID}\\.${ID}`;

/**
 * @typedef {(changes: import("./schemas.js").Change[]) => void} Review
 * @typedef {Record<string, any>} Values
 */

/** @param {{close: () => void, review: Review}} props */
export function NewType({ close, review }) {
  const [values, setValues] = useState(/** @type {Values} */ ({ kind: "collectionType" }));
  const input = { values, set: (/** @type {Values} */ part) => setValues({ ...values, ...part }) };
  const { type, plural, kind, display, drafts = false, localized = false } = values;
  const change = { operation: "add-type", type, plural: plural || `${type}s`, kind, drafts, localized };
  return html`<${Form} title="New content type" close=${close}
    submit=${() => review([display ? { ...change, display } : change])}>
    <${Input} ...${input} name="type" label="Name of one document" required pattern=${ID} autofocus
      hint="In URLs and schemas, such as article" />
    <${Input} ...${input} name="plural" label="Name of several documents" pattern=${ID}
      hint=${`${type || "article"}s`} />
    <${Input} ...${input} name="display" label="Display name" />
    <${Choice} ...${input} name="kind" label="Kind" choices=${["collectionType", "singleType"]} />
    <${Flag} ...${input} name="drafts" label="Documents can have drafts" />
    <${Flag} ...${input} name="localized" label="Documents can be translated" />
  <//>`;
}

/** @param {{close: () => void, review: Review}} props */
export function NewComponent({ close, review }) {
  const [values, setValues] = useState(/** @type {Values} */ ({}));
  const input = { values, set: (/** @type {Values} */ part) => setValues({ ...values, ...part }) };
  const { component, display } = values;
  const change = { operation: "add-component", component };
  return html`<${Form} title="New component" close=${close}
    submit=${() => review([display ? { ...change, display } : change])}>
    <${Input} ...${input} name="component" label="Category and name" required pattern=${UID} autofocus
      hint="Such as shared.seo" />
    <${Input} ...${input} name="display" label="Display name" />
  <//>`;
}

/** @param {{schema: import("./schemas.js").Schema, close: () => void, review: Review}} props */
export function RenameSchema({ schema, close, review }) {
  const [values, setValues] = useState(/** @type {Values} */ ({ to: schema.name, plural: schema.plural }));
  const input = { values, set: (/** @type {Values} */ part) => setValues({ ...values, ...part }) };
  const isComponent = schema.kind === "component";
  const change = isComponent
    ? { operation: "rename-component", component: schema.name, to: values.to }
    : { operation: "rename-type", type: schema.name, to: values.to, plural: values.plural };
  return html`<${Form} title=${`Rename ${schema.label}`} close=${close} submit=${() => review([change])}>
    <${Input} ...${input} name="to" label=${isComponent ? "Category and name" : "Name of one document"} required
      pattern=${isComponent ? UID : ID} autofocus />
    ${!isComponent && html`<${Input} ...${input} name="plural" label="Name of several documents" required
      pattern=${ID} />`}
  <//>`;
}

/** @param {{title: string, close: () => void, submit: () => void, children?: any}} props */
function Form({ title, close, submit, children }) {
  return html`<${Dialog} label=${title} close=${close}>
    <form class="stack" onSubmit=${(/** @type {Event} */ event) => {
      event.preventDefault();
      submit();
    }}>
      <h2 class="dialog-title">${title}</h2>
      ${children}
      <div class="dialog-actions">
        <button class="button" type="button" onClick=${close}>Cancel</button>
        <button class="button primary" type="submit">Show the plan</button>
      </div>
    </form>
  <//>`;
}
