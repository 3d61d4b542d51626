/** The list of users, with their roles and when they were last active. */

import { ask } from "../api.js";
import { useStudio } from "../context.js";
import { t } from "../language.js";
import { Empty, Failure, Loading } from "../states.js";
import { useHeading } from "../site/heading.js";
import { PEOPLE, useMessage } from "../store/messages.js";
import { keyOf, useRequest } from "../store/requests.js";
import { counted } from "../text.js";
import { html, useState } from "../vendor/preact.js";
import { InviteDialog } from "./invite-dialog.js";
import { lastSeen } from "./requests.js";
import { SignInNotice } from "./sign-in-notice.js";
import { PeopleTabs } from "./tabs.js";
import { UserDialog } from "./user-dialog.js";

const SHOWN = 50;
const TYPING_MS = 200;

export function UsersPage() {
  const { model } = useStudio();
  useHeading(model, t`Users`);
  const [text, setText] = useState("");
  const [role, setRole] = useState("");
  const [page, setPage] = useState(1);
  const [open, setOpen] = useState(/** @type {number | "new" | null} */ (null));
  const message = useMessage(PEOPLE);
  const may = model.mayServed("user", "find");
  const load = (/** @type {AbortSignal} */ signal) =>
    ask("users", { query: { q: text.trim(), role, page, pageSize: SHOWN }, signal });
  const key = may ? keyOf("users", text.trim(), role, page) : "";
  const { value, error, retry, reload } = useRequest(key, load, { delayMs: text ? TYPING_MS : 0 });
  const users = /** @type {import("./requests.js").User[] | undefined} */ (value?.data);
  const shown = users?.find(({ id }) => id === open);
  const close = () => setOpen(null);
  const pages = value?.meta.pagination.pageCount ?? 1;
  return html`<div class="page site-page people-page">
    <header class="page-head">
      <h1 tabindex="-1">${t`Users`}</h1>
      ${value && model.mayServed("user", "create") && html`<button class="button primary" type="button"
        onClick=${() => setOpen("new")}>${t`Invite user`}</button>`}
    </header>
    <${PeopleTabs} model=${model} current="people" />
    <p class="site-told" role="status">${message.text}</p>
    ${value?.meta.passwordSignIn === false && html`<${SignInNotice} changed=${reload} />`}
    ${!may && html`<${Empty} title=${t`Your role can't see users`}>
      ${t`An administrator can grant it with user: [find].`}<//>`}
    ${may && html`<div class="account-filter">
      <input class="input" type="search" aria-label=${t`Find users`} placeholder=${t`Name or e-mail`} value=${text}
        onInput=${(/** @type {any} */ event) => (setText(event.currentTarget.value), setPage(1))} />
      <select class="select" aria-label=${t`Role`} value=${role}
        onChange=${(/** @type {any} */ event) => (setRole(event.currentTarget.value), setPage(1))}>
        <option value="">${t`All roles`}</option>
        ${Object.keys(value?.meta.roles ?? {}).map((name) => html`<option key=${name} value=${name}>${name}</option>`)}
      </select>
    </div>`}
    ${may && !users && error && html`<${Failure} error=${error} again=${retry} />`}
    ${may && !users && !error && html`<${Loading} />`}
    ${users?.length === 0 && html`<${Empty} title=${text || role ? t`No user matches` : t`No users yet`}>
      ${text || role ? t`Change the search or the role.` : t`Invite the people who work on this site.`}<//>`}
    ${users && users.length > 0 && html`<ul class="account-list">
      ${users.map((user) => html`<li key=${user.id}>
        <button class="account-row" type="button" onClick=${() => setOpen(user.id)}>
          <span class="account-name">${user.username}</span>
          <span class="account-note">${user.email}</span>
          <span class="account-role">${user.role}</span>
          <span class="account-state">${stateOf(user)}</span>
        </button>
      </li>`)}
    </ul>`}
    ${pages > 1 && html`<nav class="account-pages" aria-label=${t`Pages of users`}>
      <button class="button" type="button" disabled=${page === 1} onClick=${() => setPage(page - 1)}>
        ${t`Previous`}</button>
      <span>${t`Page ${counted(page)} of ${counted(pages)}`}</span>
      <button class="button" type="button" disabled=${page >= pages} onClick=${() => setPage(page + 1)}>
        ${t`Next`}</button>
    </nav>`}
    ${value && shown && html`<${UserDialog} user=${shown} roles=${value.meta.roles} close=${close}
      changed=${reload} />`}
    ${value && open === "new" && html`<${InviteDialog} roles=${value.meta.roles} close=${close} changed=${reload} />`}
  </div>`;
}

/** @param {import("./requests.js").User} user */
function stateOf(user) {
  if (user.blocked) return html`<span class="account-flag is-bad">${t`Blocked`}</span>`;
  if (user.invited) return html`<span class="account-flag">${t`Invited`}</span>`;
  return lastSeen(user.lastSeen);
}
