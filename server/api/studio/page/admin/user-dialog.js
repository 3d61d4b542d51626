/** The dialog of one user: role, blocking, sessions, a new invitation, and deletion. */

import { ask } from "../api.js";
import { useStudio } from "../context.js";
import { Dialog } from "../dialog.js";
import { t } from "../language.js";
import { Notice } from "../states.js";
import { PEOPLE, clearMessage, showError, showNotice } from "../store/messages.js";
import { html, useState } from "../vendor/preact.js";
import { InvitationLink } from "./invite-dialog.js";
import { ifMatch, lastSeen, send, sentence, userPath } from "./requests.js";
import { RoleSelect } from "./role-select.js";
import { SessionList } from "./session-list.js";

const DIALOG = "user"; // the place of messages

/**
 * @typedef {import("./requests.js").User} User
 */

/** @param {{user: User, roles: Record<string, boolean>, close: () => void, changed: () => void}} props */
export function UserDialog({ user: listed, roles, close, changed }) {
  const { model } = useStudio();
  const [user, setUser] = useState(listed);
  const [role, setRole] = useState(listed.role);
  const [busy, setBusy] = useState(false);
  const [invitation, setInvitation] = useState(/** @type {any} */ (null));
  const [deleting, setDeleting] = useState(false);
  const isSelf = model.caller.kind === "user" && model.caller.name === user.username;
  const may = user.changeable;

  /**
   * Send a write about the user. If someone else has changed the user, show the new state.
   * @param {string} path
   * @param {import("../api.js").Options} options
   */
  const write = async (path, options) => {
    setBusy(true);
    clearMessage(DIALOG);
    const answer = await send(path, options, async (error) => {
      showError(DIALOG, sentence(error));
      if (error.status !== 412) return;
      const { data } = await ask(userPath(user.id));
      setUser(data);
      setRole(data.role);
      changed();
      showError(DIALOG, t`Someone else has changed ${data.username} meanwhile. This is the new state; check it first.`);
    });
    setBusy(false);
    if (answer) changed();
    return answer;
  };
  /** @param {Partial<User>} data @param {string} told */
  const change = async (data, told) => {
    const headers = ifMatch(`"${user.version}"`);
    const answer = await write(userPath(user.id), { method: "PUT", body: { data }, headers });
    if (!answer) return;
    setUser(answer.data);
    setRole(answer.data.role);
    showNotice(DIALOG, told);
  };
  const remove = async () => {
    if (!(await write(userPath(user.id), { method: "DELETE" }))) return setDeleting(false);
    showNotice(PEOPLE, t`${user.username} was deleted.`);
    return close();
  };
  const inviteAgain = async () => {
    const answer = await write(`${userPath(user.id)}/invitation`, { method: "POST" });
    if (answer) setInvitation(answer.meta);
  };
  return html`<${Dialog} label=${user.username} close=${close} class="is-wide">
    <h2 class="dialog-title">${user.username}</h2>
    <p class="hint">${user.email}. ${lastSeen(user.lastSeen)}.
      ${user.invited ? ` ${t`Has not chosen a password yet.`}` : ""}</p>
    <${Notice} place=${DIALOG} />
    ${!may && html`<p class="notice">
      ${t`${user.username} can do more than you, so you can't change this account.`}</p>`}
    <form class="account-change" onSubmit=${(/** @type {Event} */ event) => {
      event.preventDefault();
      change({ role }, `${user.username} now has the role ${role}.`);
    }}>
      <label class="field-label" for="user-role">${t`Role`}</label>
      <${RoleSelect} id="user-role" value=${role} roles=${roles} change=${setRole} disabled=${!may} />
      <button class="button" type="submit" disabled=${busy || !may || role === user.role}>${t`Change role`}</button>
    </form>
    ${may && html`<${SessionList} path=${`${userPath(user.id)}/sessions`} name=${user.username} changed=${changed} />`}
    ${invitation && html`<${InvitationLink} name=${user.username} email=${user.email} invitation=${invitation} />`}
    ${may && html`<div class="account-actions">
      <button class="button" type="button" disabled=${busy || isSelf}
        onClick=${() => change({ blocked: !user.blocked },
          user.blocked ? `${user.username} can sign in again.` : `${user.username} is blocked and signed out.`)}>
        ${user.blocked ? t`Unblock` : t`Block`}</button>
      <button class="button" type="button" disabled=${busy} onClick=${inviteAgain}>
        ${user.invited ? t`New invitation link` : t`Link for a new password`}</button>
      ${model.mayServed("user", "destroy") && !isSelf && (deleting
        ? html`<button class="button danger" type="button" disabled=${busy} onClick=${remove}>
            ${t`Delete ${user.username} for good`}</button>`
        : html`<button class="button" type="button" onClick=${() => setDeleting(true)}>${t`Delete`}</button>`)}
    </div>`}
    <div class="dialog-actions">
      <button class="button primary" type="button" onClick=${close}>${t`Close`}</button>
    </div>
  <//>`;
}
