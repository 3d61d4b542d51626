/** The dialog that invites a user. It then shows the link with which the user chooses a password. */

import { addressTo } from "../addresses.js";
import { Buttons, Dialog } from "../dialog.js";
import { t } from "../language.js";
import { clearMessage, showError, useMessage } from "../store/messages.js";
import { html, useState } from "../vendor/preact.js";
import { send, sentence } from "./requests.js";
import { RoleSelect } from "./role-select.js";
import { Secret } from "./secret.js";

const DIALOG = "invite"; // the place of messages

/** @param {{roles: Record<string, boolean>, close: () => void, changed: () => void}} props */
export function InviteDialog({ roles, close, changed }) {
  const [values, setValues] = useState({ username: "", email: "", role: firstOf(roles) });
  const [invitation, setInvitation] = useState(/** @type {any} */ (null));
  const [busy, setBusy] = useState(false);
  const message = useMessage(DIALOG);
  const set = (/** @type {Partial<typeof values>} */ part) => setValues({ ...values, ...part });
  /** @param {Event} event */
  const invite = async (event) => {
    event.preventDefault();
    setBusy(true);
    clearMessage(DIALOG);
    const answer = await send("users", { method: "POST", body: { data: values } }, (error) => {
      showError(DIALOG, sentence(error));
    });
    setBusy(false);
    if (!answer) return;
    setInvitation(answer.meta);
    changed();
  };
  if (invitation) {
    return html`<${Dialog} label=${t`Invitation`} close=${close}>
      <h2 class="dialog-title">${t`${values.username} is invited`}</h2>
      <${InvitationLink} name=${values.username} email=${values.email} invitation=${invitation} />
      <div class="dialog-actions">
        <button class="button primary" type="button" onClick=${close}>${t`Done`}</button>
      </div>
    <//>`;
  }
  return html`<${Dialog} label=${t`Invite user`} close=${close}>
    <form class="stack" onSubmit=${invite}>
      <h2 class="dialog-title">${t`Invite user`}</h2>
      <p class="field">
        <label class="field-label" for="invite-email">${t`E-mail address`}</label>
        <input class="input" id="invite-email" type="email" required autofocus autocomplete="off" value=${values.email}
          onInput=${(/** @type {any} */ event) => set({ email: event.currentTarget.value })} />
      </p>
      <p class="field">
        <label class="field-label" for="invite-name">${t`User name`}</label>
        <input class="input" id="invite-name" required minlength="3" maxlength="200" autocomplete="off"
          value=${values.username}
          onInput=${(/** @type {any} */ event) => set({ username: event.currentTarget.value })} />
      </p>
      <p class="field">
        <label class="field-label" for="invite-role">${t`Role`}</label>
        <${RoleSelect} id="invite-role" value=${values.role} roles=${roles}
          change=${(/** @type {string} */ role) => set({ role })} />
        <span class="hint"><a href=${addressTo("roles", {}, { role: values.role })}>
          ${t`What may the role ${values.role} do?`}</a></span>
      </p>
      <${Buttons} close=${close} label=${t`Invite`} disabled=${busy} error=${message.text} />
    </form>
  <//>`;
}

/** @param {{name: string, email: string, invitation: {link: string, sent: boolean}}} props */
export function InvitationLink({ name, email, invitation }) {
  return html`<p>${invitation.sent
      ? t`The link was sent to ${email}. You can also copy it here.`
      : t`This site does not send e-mail. Copy the link and give it to ${name}.`}
      ${" "}${t`It works once, within a week, and is not shown again.`}</p>
    <${Secret} label=${t`Link`} text=${invitation.link} />`;
}

/** @param {Record<string, boolean>} roles */
const firstOf = (roles) => Object.keys(roles).find((name) => roles[name]) ?? "authenticated";
