/** Content types and components: their attributes and connections, and changes to them, each shown as a plan first. */

import { addressTo } from "../addresses.js";
import { useStudio } from "../context.js";
import { Question } from "../dialog.js";
import { useGuard } from "../form/page.js";
import { Sortable } from "../form/sortable.js";
import { t } from "../language.js";
import { Link, navigate } from "../router.js";
import { useHeading } from "../site/heading.js";
import { Empty, Failure, Loading } from "../states.js";
import { UNDO, clearMessage, offerUndo } from "../store/messages.js";
import { useRequest } from "../store/requests.js";
import { html, useLayoutEffect, useState } from "../vendor/preact.js";
import { AttributeDialog } from "./attribute-dialog.js";
import { OpenUndos, forgetUndo, noteUndo } from "./open-undos.js";
import { PlanDialog } from "./plan-dialog.js";
import { Relations } from "./relations.js";
import { NewComponent, NewType, RenameSchema, SchemaOptions } from "./schema-dialogs.js";
import { KINDS, deletionOf, describe, doneText, loadSchemas, mayChangeTypes } from "./schemas.js";

/**
 * @typedef {import("./schemas.js").Schema} Schema
 * @typedef {import("./schemas.js").Change} Change
 * @typedef {Record<string, any>} Values
 * @typedef {{kind: "type" | "component", typed?: Values}} Creating  An open form for a new schema.
 * @typedef {{title: string, changes: Change[], back?: () => void}} Review  `back` opens the filled form again.
 */

/** @param {{params: URLSearchParams}} props */
export function TypesPage({ params }) {
  const { model, reload: reloadModel } = useStudio();
  useHeading(model, t`Content types`);
  const may = model.mayServed("content-type", "find");
  const { at, branch } = model.version;
  const { value, error, retry, reload } = useRequest(may ? `schemas ${at || branch}` : "", loadSchemas);
  const [creating, setCreating] = useState(/** @type {Creating | null} */ (null));
  const [review, setReview] = useState(/** @type {Review | null} */ (null));
  const schemas = value ?? [];
  const schema = schemas.find(({ name }) => name === params.get("type"));
  const mayChange = mayChangeTypes(model);
  const start = (/** @type {Review} */ wanted) => {
    clearMessage(UNDO);
    setCreating(null);
    setReview(wanted);
  };
  const refresh = async () => {
    await reload();
    reloadModel();
  };
  const undone = (/** @type {string} */ undo) => {
    forgetUndo(model, undo);
    void refresh();
  };
  const done = async (/** @type {string} */ undo) => {
    const changes = review?.changes ?? [];
    if (undo) noteUndo(model, undo, doneText(changes));
    await refresh();
    const change = changes[changes.length - 1];
    const named = change?.operation.startsWith("rename-") ? change.to
      : change?.operation.startsWith("add-") ? change.type ?? change.component : "";
    const isGone = change?.operation.startsWith("delete-");
    setReview(null);
    offerUndo(doneText(changes), undo ? [undo] : [], () => undone(undo));
    if (named || isGone) navigate(addressTo("types", {}, named ? { type: named } : {}), { unguarded: true });
  };
  return html`<div class="page site-page types-page">
    <header class="page-head">
      <h1 tabindex="-1">${t`Content types`}</h1>
      ${mayChange && value && html`<button class="button" type="button"
          onClick=${() => setCreating({ kind: "type" })}>${t`New type`}</button>
        <button class="button" type="button"
          onClick=${() => setCreating({ kind: "component" })}>${t`New component`}</button>`}
    </header>
    ${!may && html`<${Empty} title=${t`Your role can't see content types`}>
      ${t`An administrator can grant it with content-type: [find, write] and source: [read].`}<//>`}
    ${may && !value && error && html`<${Failure} error=${error} again=${retry} />`}
    ${may && !value && !error && html`<${Loading} />`}
    ${value && html`<${Chooser} schemas=${schemas} schema=${schema} />`}
    ${value && !schema && html`<${Overview} schemas=${schemas} />`}
    ${schema && html`<${SchemaView} key=${schema.uid} ...${{ schema, schemas, mayChange, start }} />`}
    ${mayChange && value && !branch && html`<${OpenUndos} model=${model} undone=${refresh} />`}
    ${creating && html`<${creating.kind === "type" ? NewType : NewComponent} schemas=${schemas}
      typed=${creating.typed} close=${() => setCreating(null)}
      review=${(/** @type {Change[]} */ changes, /** @type {Values} */ typed) => start({
        title: creating.kind === "type" ? t`Create the content type?` : t`Create the component?`,
        changes,
        back: () => setCreating({ ...creating, typed }),
      })} />`}
    ${review && html`<${PlanDialog} ...${review} close=${() => setReview(null)} done=${done} reload=${reload} />`}
  </div>`;
}

/** All content types and components, each as a link. @param {{schemas: Schema[]}} props */
function Overview({ schemas }) {
  return html`<ul class="types-list">${schemas.map(({ name, label, kind }) => html`<li key=${name}>
    <${Link} to=${addressTo("types", {}, { type: name })}>${label}<//> <span class="hint">${KINDS[kind]}</span>
  </li>`)}</ul>`;
}

/** @param {{schemas: Schema[], schema?: Schema}} props */
function Chooser({ schemas, schema }) {
  const groups = [
    { label: t`Content types`, shown: schemas.filter(({ kind }) => kind !== "component") },
    { label: t`Components`, shown: schemas.filter(({ kind }) => kind === "component") },
  ];
  return html`<p class="field">
    <label class="field-label" for="types-shown">${t`Content type or component`}</label>
    <select class="select" id="types-shown" value=${schema?.name ?? ""}
      onChange=${(/** @type {any} */ event) => navigate(addressTo("types", {}, { type: event.currentTarget.value }))}>
      <option value="">${t`All types`}</option>
      ${groups.filter(({ shown }) => shown.length).map(({ label, shown }) => html`<optgroup key=${label} label=${label}>
        ${shown.map(({ name, label: text }) => html`<option key=${name} value=${name}>${text} (${name})</option>`)}
      </optgroup>`)}
    </select>
  </p>`;
}

/** @typedef {{dialog: "attribute" | "options" | "rename", name: string, typed?: Values}} Open  An open form. */

/** @param {{schema: Schema, schemas: Schema[], mayChange: boolean, start: (review: Review) => void}} props */
function SchemaView({ schema, schemas, mayChange, start }) {
  const written = Object.keys(schema.attributes);
  const [names, setNames] = useState(written);
  const [open, setOpen] = useState(/** @type {Open | null} */ (null));
  useLayoutEffect(() => setNames(written), [written.join()]);
  const isComponent = schema.kind === "component";
  const isMoved = names.join() !== written.join();
  const [leave, stay] = useGuard(isMoved);
  const form = (/** @type {Open} */ { name, typed }, /** @type {string} */ title) => ({
    schema,
    schemas,
    name,
    typed,
    close: () => setOpen(null),
    review: (/** @type {Change[]} */ changes, /** @type {Values} */ values) => {
      setOpen(null);
      start({ title, changes, back: () => setOpen(open && { ...open, typed: values }) });
    },
  });
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
      ${mayChange && html`<button class="button" type="button"
          onClick=${() => setOpen({ dialog: "options", name: "" })}>
          ${t`Options of ${schema.label}`}</button>
        <button class="button" type="button" onClick=${() => setOpen({ dialog: "rename", name: "" })}>
          ${t`Rename ${schema.label}`}</button>
        <button class="button" type="button"
          onClick=${() => start({ title: t`Delete ${schema.label}?`, changes: deletionOf(schema, schemas) })}>
          ${t`Delete ${schema.label}`}</button>`}
    </div>
    <p class="hint"><code>${schema.name}</code>, ${facts.join(", ")}</p>
    <h3>${t`Attributes`}</h3>
    ${mayChange
      ? html`<${Sortable} id="types-attributes" items=${names} keyOf=${(/** @type {string} */ name) => name}
          nameOf=${(/** @type {string} */ name) => name} change=${arrange}>
          ${(/** @type {string} */ name) => html`<${AttributeRow} name=${name} schema=${schema}
            edit=${() => setOpen({ dialog: "attribute", name })} />`}<//>`
      : html`<ul class="types-list">${written.map((name) => html`<li key=${name}>
          <${AttributeRow} name=${name} schema=${schema} /></li>`)}</ul>`}
    ${!written.length && html`<p class="hint">${t`No attributes yet.`}</p>`}
    ${mayChange && html`<div class="account-actions">
      <button class="button primary" type="button"
        onClick=${() => setOpen({ dialog: "attribute", name: "" })}>${t`Add attribute`}</button>
      ${isMoved && html`<button class="button" type="button" onClick=${() => start({
        title: t`Change the order?`,
        changes: [{ operation: "reorder", type: schema.name, attributes: names }],
      })}>${t`Save the order`}</button>`}
    </div>`}
    <h3>${t`Connections`}</h3>
    <${Relations} schema=${schema} schemas=${schemas} />
    ${open?.dialog === "attribute" && html`<${AttributeDialog}
      ...${form(open, open.name ? t`Change ${open.name}?` : t`Add the attribute?`)} />`}
    ${open?.dialog === "options" && html`<${SchemaOptions} ...${form(open, t`Change ${schema.label}?`)} />`}
    ${open?.dialog === "rename" && html`<${RenameSchema} ...${form(open, t`Rename ${schema.label}?`)} />`}
    ${leave && html`<${Question} title=${t`Leave the page?`} text=${t`The order is not saved.`} label=${t`Leave`}
      confirm=${leave} close=${stay} />`}
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
