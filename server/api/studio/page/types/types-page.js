/** Content types and components: their attributes and connections, and changes to them, each shown as a plan first. */

import { addressTo } from "../addresses.js";
import { useStudio } from "../context.js";
import { Sortable } from "../form/sortable.js";
import { t } from "../language.js";
import { navigate } from "../router.js";
import { useHeading } from "../site/heading.js";
import { Empty, Failure, Loading } from "../states.js";
import { UNDO, clearMessage, offerUndo } from "../store/messages.js";
import { useRequest } from "../store/requests.js";
import { html, useEffect, useState } from "../vendor/preact.js";
import { AttributeDialog } from "./attribute-dialog.js";
import { PlanDialog } from "./plan-dialog.js";
import { Relations } from "./relations.js";
import { NewComponent, NewType, RenameSchema, SchemaOptions } from "./schema-dialogs.js";
import { KINDS, deletionOf, describe, loadSchemas, mayChangeTypes } from "./schemas.js";

/**
 * @typedef {import("./schemas.js").Schema} Schema
 * @typedef {{title: string, changes: import("./schemas.js").Change[]}} Review
 */

/** @param {{params: URLSearchParams}} props */
export function TypesPage({ params }) {
  const { model, reload: reloadModel } = useStudio();
  useHeading(model, t`Content types`);
  const may = model.mayServed("content-type", "find");
  const { at, branch } = model.version;
  const { value, error, retry, reload } = useRequest(may ? `schemas ${at || branch}` : "", loadSchemas);
  const [creating, setCreating] = useState(/** @type {"" | "type" | "component"} */ (""));
  const [review, setReview] = useState(/** @type {Review | null} */ (null));
  const schemas = value ?? [];
  const schema = schemas.find(({ name }) => name === params.get("type")) ?? schemas[0];
  const mayChange = mayChangeTypes(model);
  const start = (/** @type {Review} */ wanted) => {
    clearMessage(UNDO);
    setCreating("");
    setReview(wanted);
  };
  const refresh = async () => {
    await reload();
    reloadModel();
  };
  const done = async (/** @type {string} */ undo) => {
    await refresh();
    const [change] = review?.changes ?? [];
    const named = change?.operation.startsWith("rename-") ? change.to
      : change?.operation.startsWith("add-") ? change.type ?? change.component : "";
    setReview(null);
    offerUndo(t`The change was made.`, undo ? [undo] : [], () => void refresh());
    if (named) navigate(addressTo("types", {}, { type: named }));
  };
  return html`<div class="page site-page types-page">
    <header class="page-head">
      <h1 tabindex="-1">${t`Content types`}</h1>
      ${mayChange && value && html`<button class="button" type="button"
          onClick=${() => setCreating("type")}>${t`New type`}</button>
        <button class="button" type="button" onClick=${() => setCreating("component")}>${t`New component`}</button>`}
    </header>
    ${!may && html`<${Empty} title=${t`Your role can't see content types`}>
      ${t`An administrator can grant it with content-type: [find, write] and source: [read].`}<//>`}
    ${may && !value && error && html`<${Failure} error=${error} again=${retry} />`}
    ${may && !value && !error && html`<${Loading} />`}
    ${schema && html`<${Chooser} schemas=${schemas} schema=${schema} />
      <${SchemaView} key=${schema.uid} schema=${schema} schemas=${schemas} mayChange=${mayChange} start=${start} />`}
    ${creating === "type" && html`<${NewType} close=${() => setCreating("")}
      review=${(/** @type {any} */ changes) => start({ title: t`Create the content type?`, changes })} />`}
    ${creating === "component" && html`<${NewComponent} schemas=${schemas} close=${() => setCreating("")}
      review=${(/** @type {any} */ changes) => start({ title: t`Create the component?`, changes })} />`}
    ${review && html`<${PlanDialog} ...${review} close=${() => setReview(null)} done=${done} reload=${reload} />`}
  </div>`;
}

/** @param {{schemas: Schema[], schema: Schema}} props */
function Chooser({ schemas, schema }) {
  const groups = [
    { label: t`Content types`, shown: schemas.filter(({ kind }) => kind !== "component") },
    { label: t`Components`, shown: schemas.filter(({ kind }) => kind === "component") },
  ];
  return html`<p class="field">
    <label class="field-label" for="types-shown">${t`Content type or component`}</label>
    <select class="select" id="types-shown" value=${schema.name}
      onChange=${(/** @type {any} */ event) => navigate(addressTo("types", {}, { type: event.currentTarget.value }))}>
      ${groups.filter(({ shown }) => shown.length).map(({ label, shown }) => html`<optgroup key=${label} label=${label}>
        ${shown.map(({ name, label: text }) => html`<option key=${name} value=${name}>${text} (${name})</option>`)}
      </optgroup>`)}
    </select>
  </p>`;
}

/** @param {{schema: Schema, schemas: Schema[], mayChange: boolean, start: (review: Review) => void}} props */
function SchemaView({ schema, schemas, mayChange, start }) {
  const written = Object.keys(schema.attributes);
  const [names, setNames] = useState(written);
  const [editing, setEditing] = useState(/** @type {string | null} */ (null));
  const [dialog, setDialog] = useState(/** @type {"" | "options" | "rename"} */ (""));
  useEffect(() => setNames(written), [written.join()]);
  const isComponent = schema.kind === "component";
  const isMoved = names.join() !== written.join();
  /** @param {string[]} next */
  const arrange = (next) => {
    const removed = names.find((name) => !next.includes(name));
    if (!removed) return setNames(next);
    const change = { operation: "drop", attribute: `${schema.name}.${removed}` };
    return start({ title: t`Delete ${removed}?`, changes: [change] });
  };
  const facts = [
    KINDS[schema.kind],
    ...(schema.drafts ? [t`drafts`] : []),
    ...(schema.localized ? [t`localized`] : []),
  ];
  return html`<section aria-labelledby="types-heading" class="types-schema">
    <div class="types-head">
      <h2 id="types-heading">${schema.label}</h2>
      ${mayChange && html`<button class="button" type="button" onClick=${() => setDialog("options")}>
          ${t`Options of ${schema.label}`}</button>
        <button class="button" type="button" onClick=${() => setDialog("rename")}>
          ${t`Rename ${schema.label}`}</button>
        <button class="button" type="button"
          onClick=${() => start({ title: t`Delete ${schema.label}?`, changes: deletionOf(schema, schemas) })}>
          ${t`Delete ${schema.label}`}</button>`}
    </div>
    <p class="hint"><code>${schema.uid}</code>, ${facts.join(", ")}</p>
    <h3>${t`Attributes`}</h3>
    ${mayChange
      ? html`<${Sortable} id="types-attributes" items=${names} keyOf=${(/** @type {string} */ name) => name}
          nameOf=${(/** @type {string} */ name) => name} change=${arrange}>
          ${(/** @type {string} */ name) => html`<${AttributeRow} name=${name} schema=${schema}
            edit=${() => setEditing(name)} />`}<//>`
      : html`<ul class="types-list">${written.map((name) => html`<li key=${name}>
          <${AttributeRow} name=${name} schema=${schema} /></li>`)}</ul>`}
    ${!written.length && html`<p class="hint">${t`No attributes yet.`}</p>`}
    ${mayChange && html`<div class="account-actions">
      <button class="button primary" type="button" onClick=${() => setEditing("")}>${t`Add attribute`}</button>
      ${isMoved && html`<button class="button" type="button" onClick=${() => start({
        title: t`Change the order?`,
        changes: [{ operation: "reorder", type: schema.name, attributes: names }],
      })}>${t`Save the order`}</button>`}
    </div>`}
    <h3>${t`Connections`}</h3>
    <${Relations} schema=${schema} schemas=${schemas} />
    ${editing !== null && html`<${AttributeDialog} schema=${schema} schemas=${schemas} name=${editing}
      close=${() => setEditing(null)} review=${(/** @type {any} */ changes) => {
        setEditing(null);
        start({ title: editing ? t`Change ${editing}?` : t`Add the attribute?`, changes });
      }} />`}
    ${dialog === "options" && html`<${SchemaOptions} schema=${schema} close=${() => setDialog("")}
      review=${(/** @type {any} */ changes) => {
        setDialog("");
        start({ title: t`Change ${schema.label}?`, changes });
      }} />`}
    ${dialog === "rename" && html`<${RenameSchema} schema=${schema} close=${() => setDialog("")}
      review=${(/** @type {any} */ changes) => {
        setDialog("");
        start({ title: t`Rename ${schema.label}?`, changes });
      }} />`}
  </section>`;
}

/** @param {{name: string, schema: Schema, edit?: () => void}} props */
function AttributeRow({ name, schema, edit }) {
  const attribute = schema.attributes[name];
  return html`<span class="types-row"><strong>${name}</strong>
    <span class="hint">${attribute ? describe(attribute) : ""}</span>
    ${edit && attribute && html`<button class="button" type="button" aria-label=${t`Change ${name}`}
      onClick=${edit}>${t`Change`}</button>`}</span>`;
}
