/** Content types and components: their attributes and connections, and changes to them, each shown as a plan first. */

import { addressTo } from "../addresses.js";
import { useStudio } from "../context.js";
import { Question } from "../dialog.js";
import { useGuard } from "../form/page.js";
import { Sortable } from "../form/sortable.js";
import { plural, t } from "../language.js";
import { Link, navigate } from "../router.js";
import { useHeading } from "../site/heading.js";
import { Empty, Failure, Loading } from "../states.js";
import { UNDO, clearMessage, offerUndo } from "../store/messages.js";
import { useRequest } from "../store/requests.js";
import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { AttributeDialog } from "./attribute-dialog.js";
import { OpenUndos, forgetUndo, noteUndo } from "./open-undos.js";
import { PlanDialog } from "./plan-dialog.js";
import { Relations } from "./relations.js";
import { NewComponent, NewType, RenameSchema, SchemaOptions } from "./schema-dialogs.js";
import { KINDS, deletionOf, describe, doneText, loadSchemas, mayChangeTypes } from "./schemas.js";
import { useUnsavedChanges } from "./unsaved-changes.js";

/**
 * @typedef {import("./schemas.js").Schema} Schema
 * @typedef {import("./schemas.js").Change} Change
 * @typedef {import("./unsaved-changes.js").Row} Row
 * @typedef {Record<string, any>} Values
 * @typedef {{kind: "type" | "component", typed?: Values}} Creating  An open form for a new schema.
 * @typedef {{title: string, changes: Change[], back?: () => void}} Review  `back` opens the filled form again.
 * @typedef {{dialog: "attribute" | "options" | "rename" | "discard", row?: Row, typed?: Values}} Open  An open dialog.
 */

/** @param {{params: URLSearchParams}} props */
export function TypesPage({ params }) {
  const { model, reload: reloadModel } = useStudio();
  useHeading(model, t`Content types`);
  const may = model.mayServed("content-type", "find");
  const { at, branch } = model.version;
  const { value, error, retry, reload } = useRequest(may ? `schemas ${at || branch}` : "", loadSchemas);
  const [creating, setCreating] = useState(/** @type {Creating | null} */ (null));
  const [review, setReview] = useState(/** @type {Review & {round: number} | null} */ (null));
  const schemas = value ?? [];
  const name = params.get("type");
  const schema = schemas.find((one) => one.name === name);
  const isMissing = name && !schema && !review; // or else the review is about to show another type
  const mayChange = mayChangeTypes(model);
  const start = (/** @type {Review} */ wanted) => {
    clearMessage(UNDO);
    setCreating(null);
    setReview({ ...wanted, round: 0 });
  };
  const refresh = async () => {
    await reload();
    reloadModel();
  };
  const undone = (/** @type {string} */ undo) => {
    forgetUndo(model, undo);
    void refresh();
  };
  const done = async (/** @type {string} */ undo, /** @type {Change[]} */ changes) => {
    if (undo) noteUndo(model, undo, doneText(changes));
    await refresh();
    const change = changes[changes.length - 1];
    const named = change?.operation.startsWith("rename-") ? change.to
      : change?.operation.startsWith("add-") ? change.type ?? change.component : "";
    const isGone = change?.operation.startsWith("delete-");
    setReview(null);
    offerUndo(doneText(changes), undo ? [undo] : [], () => undone(undo));
    if (named || isGone) navigate(addressTo("types", {}, named ? { type: named } : {}));
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
    ${value && isMissing && html`<p class="notice" role="alert">${t`${name} no longer exists`}</p>`}
    ${value && html`<${Chooser} schemas=${schemas} schema=${schema} />`}
    ${value && !schema && html`<${Overview} schemas=${schemas} />`}
    ${schema && html`<${SchemaView} key=${schema.uid} ...${{ schema, schemas, mayChange, start, done, reload }} />`}
    ${mayChange && value && !branch && html`<${OpenUndos} model=${model} undone=${refresh} />`}
    ${creating && html`<${creating.kind === "type" ? NewType : NewComponent} schemas=${schemas}
      typed=${creating.typed} close=${() => setCreating(null)}
      review=${(/** @type {Change[]} */ changes, /** @type {Values} */ typed) => start({
        title: creating.kind === "type" ? t`Create the content type?` : t`Create the component?`,
        changes,
        back: () => setCreating({ ...creating, typed }),
      })} />`}
    ${review && html`<${PlanDialog} key=${review.round} ...${review} close=${() => setReview(null)} done=${done}
      again=${() => reload().then(() => setReview({ ...review, round: review.round + 1 }))} />`}
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
      onChange=${(/** @type {any} */ { currentTarget }) => {
        const type = currentTarget.value;
        currentTarget.value = schema?.name ?? ""; // until the page may be left
        navigate(addressTo("types", {}, { type }));
      }}>
      <option value="">${t`All types`}</option>
      ${groups.filter(({ shown }) => shown.length).map(({ label, shown }) => html`<optgroup key=${label} label=${label}>
        ${shown.map(({ name, label: text }) => html`<option key=${name} value=${name}>${text} (${name})</option>`)}
      </optgroup>`)}
    </select>
  </p>`;
}

/**
 * A content type or component: its attributes with the changes that are not saved, and its connections.
 * @param {{schema: Schema, schemas: Schema[], mayChange: boolean, reload: () => Promise<void>,
 *   start: (review: Review) => void,
 *   done: (undo: string, changes: Change[]) => Promise<void>}} props
 */
function SchemaView({ schema, schemas, mayChange, start, done, reload }) {
  const { model } = useStudio();
  const unsaved = useUnsavedChanges(model, schema);
  const { lines, rows, changes } = unsaved;
  const [open, setOpen] = useState(/** @type {Open | null} */ (null));
  const [round, setRound] = useState(0); // of the review; 0 if the changes are not being reviewed
  const [problem, setProblem] = useState("");
  const [saved, setSaved] = useState(0); // how many reviews have been applied
  const heading = useRef(/** @type {HTMLElement | null} */ (null));
  const [leave, stay] = useGuard(mayChange && lines.length > 0);
  useEffect(() => {
    if (saved && document.activeElement === document.body) heading.current?.focus(); // The button is disabled by then.
  }, [saved]);
  const close = () => setOpen(null);
  const told = lines.length
    ? plural(lines.length, { one: "{0} unsaved change", other: "{0} unsaved changes" }) : "";
  /** Change what is not saved. The focused element may be removed. @param {() => string | void} change */
  const edit = (change) => {
    setRound(0);
    setProblem(change() || "");
    heading.current?.focus();
  };
  const review = async () => {
    clearMessage(UNDO);
    await reload();
    setRound(round + 1);
  };
  const form = (/** @type {string} */ title) => ({
    schema,
    close,
    typed: open?.typed,
    review: (/** @type {Change[]} */ wanted, /** @type {Values} */ typed) => {
      close();
      start({ title, changes: wanted, back: () => setOpen(open && { ...open, typed }) });
    },
  });
  const facts = [
    KINDS[schema.kind],
    ...(schema.drafts ? [t`drafts`] : []),
    ...(schema.localized ? [t`localized`] : []),
  ];
  const first = told && t`First save or discard the changes.`;
  return html`<section aria-labelledby="types-heading" class="types-schema">
    <div class="types-head">
      <h2 id="types-heading">${schema.label}</h2>
      ${mayChange && html`<button class="button" type="button" onClick=${() => setOpen({ dialog: "options" })}>
          ${t`Options of ${schema.label}`}</button>
        <button class="button" type="button" disabled=${first} title=${first}
          onClick=${() => setOpen({ dialog: "rename" })}>${t`Rename ${schema.label}`}</button>
        <button class="button" type="button" disabled=${first} title=${first}
          onClick=${() => start({ title: t`Delete ${schema.label}?`, changes: deletionOf(schema, schemas) })}>
          ${t`Delete ${schema.label}`}</button>`}
    </div>
    <p class="hint"><code>${schema.name}</code>, ${facts.join(", ")}</p>
    <h3 tabindex="-1" ref=${heading}>${t`Attributes`}</h3>
    ${mayChange
      ? html`<${Sortable} id="types-attributes" items=${rows} keyOf=${(/** @type {Row} */ { key }) => key}
          nameOf=${(/** @type {Row} */ { name }) => name} change=${(/** @type {Row[]} */ next) => {
            const arrange = () => unsaved.arrange(next.map(({ key }) => key));
            if (next.length < rows.length) edit(arrange);
            else arrange();
          }}>
          ${(/** @type {Row} */ row) => html`<${AttributeRow} ...${row} change=${() =>
            setOpen({ dialog: "attribute", row })} />`}<//>`
      : html`<ul class="types-list">${Object.entries(schema.attributes).map(([name, attribute]) => html`<li key=${name}>
          <${AttributeRow} ...${{ name, attribute }} /></li>`)}</ul>`}
    ${!rows.length && html`<p class="hint">${t`No attributes yet.`}</p>`}
    ${mayChange && html`<p><button class="button" type="button"
        onClick=${() => setOpen({ dialog: "attribute" })}>${t`Add attribute`}</button></p>
      ${told && html`<h3>${t`Changes`}</h3>`}
      <ul class="types-list" aria-label=${t`Changes`}>${lines.map(({ key, text, hint }) => html`<li class="types-row"
        key=${key}><span>${text}</span> <span class="hint">${hint}</span>
        <button class="button" type="button" aria-label=${t`Take back: ${text}`}
          onClick=${() => edit(() => unsaved.takeBack(key))}>${t`Take back`}</button></li>`)}</ul>
      <div class="save-bar">
        <p class="field-error" role="alert">${problem}</p>
        <button class="button primary" type="button" disabled=${!changes.length} onClick=${review}>
          ${t`Review changes`}</button>
        <button class="button" type="button" disabled=${!told} onClick=${() => setOpen({ dialog: "discard" })}>
          ${t`Discard`}</button>
        <span role="status">${told}</span>
      </div>`}
    <h3>${t`Connections`}</h3>
    <${Relations} schema=${schema} schemas=${schemas} />
    ${open?.dialog === "attribute" && html`<${AttributeDialog} ...${{ schemas, rows, row: open.row, close }}
      schema=${{ ...schema, attributes: Object.fromEntries(rows.map(({ key, attribute }) => [key, attribute])) }}
      save=${(/** @type {Values} */ values) => {
        setRound(0);
        unsaved.save(open.row?.key ?? "", values);
        close();
      }} />`}
    ${open?.dialog === "options" && html`<${SchemaOptions} ...${form(t`Change ${schema.label}?`)} />`}
    ${open?.dialog === "rename" && html`<${RenameSchema} ...${form(t`Rename ${schema.label}?`)} />`}
    ${open?.dialog === "discard" && html`<${Question} title=${t`Discard ${told}?`} label=${t`Discard`} danger
      text=${lines.map(({ text }) => text).join(", ")} close=${close} confirm=${() => {
        close();
        edit(unsaved.discard);
      }} />`}
    ${round > 0 && changes.length > 0 && html`<${PlanDialog} key=${round} title=${t`Change ${schema.label}?`}
      changes=${changes} isOutdated=${unsaved.isOutdated} close=${() => setRound(0)} again=${review}
      done=${async (/** @type {string} */ undo) => {
        await done(undo, changes);
        setRound(0);
        setSaved(saved + 1);
        unsaved.discard();
      }} />`}
    ${leave && html`<${Question} title=${t`Leave the page?`} label=${t`Leave`} confirm=${leave} close=${stay}
      text=${t`Your changes are not saved. They are kept in this browser.`} />`}
  </section>`;
}

/** @param {Partial<Row> & {attribute: import("./schemas.js").Attribute, change?: () => void}} props */
function AttributeRow({ name, attribute, old, isChanged, change }) {
  return html`<span class="types-row"><strong>${name}</strong>
    <span class="hint">${describe(attribute)}${isChanged && ` · ${old ? t`Changed` : t`Added`}`}</span>
    ${change && html`<button class="button" type="button" aria-label=${t`Change ${name}`}
      onClick=${change}>${t`Change`}</button>`}</span>`;
}
