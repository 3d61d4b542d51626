/** The roles in site.yaml: for each, a table of content types and actions. */

import { ask } from "../api.js";
import { useStudio } from "../context.js";
import { Buttons, Dialog } from "../dialog.js";
import { plural, t } from "../language.js";
import { navigate } from "../router.js";
import { addressTo } from "../addresses.js";
import { useHeading } from "../site/heading.js";
import { Empty, Failure, Loading, Notice } from "../states.js";
import { PEOPLE, ROLE, clearMessage, showError, showNotice } from "../store/messages.js";
import { useRequest } from "../store/requests.js";
import { html, useState } from "../vendor/preact.js";
import { PermissionTable } from "./permission-table.js";
import { isGranted, permissionLabel, sentence } from "./requests.js";
import { RolePreview } from "./role-preview.js";
import { CHANGED_MEANWHILE, ReviewDialog } from "./site-file.js";
import { PeopleTabs } from "./tabs.js";

/**
 * @typedef {import("./requests.js").Role} Role
 * @typedef {import("./requests.js").Edits} Edits
 */

/** @param {{params: URLSearchParams}} props */
export function RolesPage({ params }) {
  const { model } = useStudio();
  useHeading(model, t`Roles`);
  const may = model.mayServed("role", "find");
  const { value, error, retry, reload } = useRequest(may ? "roles" : "", (signal) => ask("roles", { signal }));
  const [creating, setCreating] = useState(false);
  const roles = /** @type {Role[] | undefined} */ (value?.data);
  const role = roles?.find(({ name }) => name === params.get("role")) ?? roles?.[0];
  const show = (/** @type {string} */ name) => navigate(addressTo("roles", {}, { role: name }));
  return html`<div class="page site-page people-page">
    <header class="page-head">
      <h1 tabindex="-1">${t`Roles`}</h1>
      ${roles && model.mayServed("role", "update") && html`<button class="button" type="button"
        onClick=${() => setCreating(true)}>${t`New role`}</button>`}
    </header>
    <${PeopleTabs} model=${model} current="roles" />
    <${Notice} place=${PEOPLE} />
    ${!may && html`<${Empty} title=${t`Your role can't see roles`}>
      ${t`An administrator can grant it with role: [find].`}<//>`}
    ${may && !roles && error && html`<${Failure} error=${error} again=${retry} />`}
    ${may && !roles && !error && html`<${Loading} />`}
    ${value && roles && role && html`<p class="field roles-choice">
      <label class="field-label" for="role">${t`Role`}</label>
      <select class="select" id="role" value=${role.name}
        onChange=${(/** @type {any} */ event) => show(event.currentTarget.value)}>
        ${roles.map((one) => html`<option key=${one.name} value=${one.name}>
          ${one.name} (${usersText(one.users)})</option>`)}
      </select>
    </p>
    <${RoleForm} key=${role.name} role=${role} actions=${value.meta.actions} etag=${value.etag} reload=${reload} />`}
    ${creating && html`<${NewRole} close=${() => setCreating(false)} etag=${value?.etag ?? ""}
      taken=${roles?.map(({ name }) => name) ?? []} reload=${reload}
      done=${async (/** @type {string} */ name) => {
        await reload();
        setCreating(false);
        show(name);
      }} />`}
  </div>`;
}

/** @param {{role: Role, actions: Record<string, string[]>, etag: string, reload: () => Promise<void>}} props */
function RoleForm({ role, actions, etag, reload }) {
  const { model } = useStudio();
  const [edits, setEdits] = useState(/** @type {Edits} */ ({}));
  const [reviewing, setReviewing] = useState(/** @type {"" | "save" | "delete"} */ (""));
  const mayUpdate = model.mayServed("role", "update");
  const isBuiltIn = role.name === "public" || role.name === "authenticated";
  const changes = Object.entries(edits).filter(([key, granted]) => granted !== isGranted(role, key));
  const subjects = new Set(changes.map(([key]) => key.slice(0, key.lastIndexOf("."))));
  const permissions = Object.fromEntries([...subjects].map((subject) => {
    return [subject, withEdits(role, subject, actions[subject] ?? [], edits)];
  }));
  /** @param {import("../api.js").ApiError} error */
  const refused = async (error) => {
    setReviewing("");
    showError(ROLE, error.status === 412 ? CHANGED_MEANWHILE : sentence(error));
    if (error.status === 412) await reload();
  };
  /** @param {string} place @param {string} told */
  const done = async (place, told) => {
    await reload();
    setReviewing("");
    setEdits({});
    showNotice(place, told);
  };
  const toggle = (/** @type {string} */ key, /** @type {boolean} */ granted) => {
    clearMessage(PEOPLE);
    clearMessage(ROLE);
    setEdits({ ...edits, [key]: granted });
  };
  const change = reviewing === "delete"
    ? { path: `roles/${role.name}`, method: "DELETE" }
    : { path: `roles/${role.name}`, data: { permissions } };
  return html`
    ${mayUpdate && !role.changeable && html`<p class="notice">${t`This role can do things that you can't. You can change
      only the permissions that you have yourself.`}</p>`}
    <${PermissionTable} role=${role} actions=${actions} edits=${edits} toggle=${toggle} mayUpdate=${mayUpdate} />
    <div class="save-bar">
      <${Notice} place=${ROLE} />
      ${mayUpdate && html`<button class="button primary" type="button" disabled=${!changes.length}
        onClick=${() => setReviewing("save")}>${t`Review and save`}</button>
      <button class="button" type="button" disabled=${!changes.length}
        onClick=${() => setEdits({})}>${t`Undo changes`}</button>`}
      <span role="status">${changes.length ? changesText(changes.length) : ""}</span>
      <${RolePreview} role=${role} />
      ${mayUpdate && !isBuiltIn && role.changeable && html`<button class="button" type="button"
        disabled=${role.users > 0} title=${role.users ? t`${usersText(role.users)}: give them another role first` : ""}
        onClick=${() => setReviewing("delete")}>${t`Delete role`}</button>`}
    </div>
    ${reviewing && html`<${ReviewDialog} key=${reviewing} change=${change} etag=${etag} close=${() => setReviewing("")}
      title=${reviewing === "delete" ? t`Delete the role ${role.name}?` : t`Change the role ${role.name}?`}
      label=${reviewing === "delete" ? t`Delete role` : t`Save`} refused=${refused}
      done=${() => (reviewing === "delete" ? done(PEOPLE, t`The role ${role.name} was deleted.`)
        : done(ROLE, t`The role ${role.name} was changed.`))}
      note=${reviewing === "save" && html`${role.name === "public"
          && html`<p>${t`Everyone has this role, also without signing in.`}</p>`}
        <ul>${changes.map(([key, granted]) => html`<li key=${key}>
          ${granted ? t`Allowed` : t`No longer allowed`}: ${permissionLabel(model, key)}</li>`)}</ul>`} />`}`;
}

/**
 * @param {{close: () => void, done: (name: string) => void, taken: string[], etag: string,
 *   reload: () => Promise<void>}} props
 */
function NewRole({ close, done, taken, etag, reload }) {
  const [name, setName] = useState("");
  const [reviewing, setReviewing] = useState(false);
  const [wrong, setWrong] = useState("");
  if (reviewing) {
    return html`<${ReviewDialog} title=${t`Create the role ${name}?`} label=${t`Create`} etag=${etag} isBack
      close=${() => setReviewing(false)}
      change=${{ path: `roles/${encodeURIComponent(name)}`, data: { permissions: {} } }} done=${() => done(name)}
      refused=${async (/** @type {import("../api.js").ApiError} */ error) => {
        if (error.status === 412) await reload();
        setWrong(error.status === 412 ? t`Someone else has changed site.yaml meanwhile. Try again.` : sentence(error));
        setReviewing(false);
      }} />`;
  }
  return html`<${Dialog} label=${t`New role`} close=${close}>
    <form class="stack" onSubmit=${(/** @type {Event} */ event) => {
      event.preventDefault();
      if (taken.includes(name)) setWrong(t`There is already a role ${name}.`);
      else setReviewing(true);
    }}>
      <h2 class="dialog-title">${t`New role`}</h2>
      <p class="field">
        <label class="field-label" for="role-name">${t`Name`}</label>
        <input class="input" id="role-name" required autofocus maxlength="50" pattern="[A-Za-z][A-Za-z0-9_\\-]*"
          autocomplete="off" value=${name} aria-describedby="role-hint role-error"
          onInput=${(/** @type {any} */ event) => (setName(event.currentTarget.value), setWrong(""))} />
        <span class="hint" id="role-hint">${t`Letters, digits, - and _, for example editor.`}</span>
      </p>
      <${Buttons} close=${close} label=${t`Continue`} error=${wrong} errorId="role-error" />
    </form>
  <//>`;
}

/**
 * Return the actions of a subject after the edits.
 * @param {Role} role
 * @param {string} subject
 * @param {string[]} actions
 * @param {Edits} edits
 */
function withEdits(role, subject, actions, edits) {
  return actions.filter((action) => edits[`${subject}.${action}`] ?? isGranted(role, `${subject}.${action}`));
}

/** @param {number} count */
const usersText = (count) => plural(count, { one: "{0} user", other: "{0} users" });

/** @param {number} count */
const changesText = (count) => plural(count, { one: "{0} change", other: "{0} changes" });
