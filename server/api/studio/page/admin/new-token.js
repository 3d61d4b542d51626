/** The dialog that creates an API token, and shows it once. */

import { useStudio } from "../context.js";
import { Buttons, Dialog } from "../dialog.js";
import { t } from "../language.js";
import { clearMessage, showError, useMessage } from "../store/messages.js";
import { html, useState } from "../vendor/preact.js";
import { actionLabel, send, sentence, subjectLabel } from "./requests.js";
import { Secret } from "./secret.js";

const DIALOG = "new-token"; // the place of messages
const LIFETIMES = [["30d", t`30 days`], ["90d", t`90 days`], ["1y", t`One year`], ["", t`Does not expire`]];

/** @param {{close: () => void, changed: () => void}} props */
export function NewToken({ close, changed }) {
  const { model } = useStudio();
  const isOwner = model.caller.kind === "owner";
  const [values, setValues] = useState({ name: "", type: "custom", expires: "90d", branchOnly: false });
  const [permissions, setPermissions] = useState(/** @type {string[]} */ ([]));
  const [secret, setSecret] = useState("");
  const [busy, setBusy] = useState(false);
  const message = useMessage(DIALOG);
  const set = (/** @type {Partial<typeof values>} */ part) => setValues({ ...values, ...part });
  /** @param {string} permission @param {boolean} granted */
  const toggle = (permission, granted) => {
    const others = permissions.filter((/** @type {string} */ one) => one !== permission);
    setPermissions(granted ? [...others, permission] : others);
  };
  /** @param {Event} event */
  const create = async (event) => {
    event.preventDefault();
    setBusy(true);
    clearMessage(DIALOG);
    const data = {
      ...values,
      expires: values.expires || null,
      permissions: /** @type {string[]} */ ([]),
      ...values.type === "custom" && { permissions },
      ...values.type === "published" && { type: "custom", permissions: readsOf(model) },
    };
    const answer = await send("tokens", { method: "POST", body: { data } }, (error) => {
      showError(DIALOG, sentence(error));
    });
    setBusy(false);
    if (!answer) return;
    setSecret(answer.meta.secret);
    changed();
  };
  if (secret) {
    return html`<${Dialog} label=${t`New token`} close=${close}>
      <h2 class="dialog-title">${t`Token ${values.name}`}</h2>
      <p>${t`Copy the token now. It is not shown again.`}</p>
      <${Secret} label=${t`Token`} text=${secret} />
      <div class="dialog-actions"><button class="button primary" type="button" onClick=${close}>
        ${t`Done`}</button></div>
    <//>`;
  }
  return html`<${Dialog} label=${t`New token`} close=${close} class="is-wide">
    <form class="stack" onSubmit=${create}>
      <h2 class="dialog-title">${t`New token`}</h2>
      <p class="field">
        <label class="field-label" for="token-name">${t`Name`}</label>
        <input class="input" id="token-name" required autofocus maxlength="100" autocomplete="off" value=${values.name}
          onInput=${(/** @type {any} */ event) => set({ name: event.currentTarget.value })} />
      </p>
      <p class="field">
        <label class="field-label" for="token-type">${t`May do`}</label>
        <select class="select" id="token-type" value=${values.type}
          onChange=${(/** @type {any} */ event) => set({ type: event.currentTarget.value })}>
          <option value="custom">${t`What you choose below`}</option>
          <option value="published">${t`Read published content`}</option>
          ${isOwner && html`<option value="read-only">${t`Read all content, with drafts`}</option>`}
          ${isOwner && html`<option value="full-access">${t`Everything`}</option>`}
        </select>
      </p>
      ${values.type === "custom" && html`<div class="permission-groups">
        ${Object.entries(model.permissions).map(([subject, actions]) => html`<fieldset key=${subject}
          class="permission-group">
          <legend>${subjectLabel(model, subject)}</legend>
          ${actions.map((action) => html`<label key=${action} class="permission-choice">
            <input type="checkbox" checked=${permissions.includes(`${subject}.${action}`)}
              onChange=${(/** @type {any} */ event) => toggle(`${subject}.${action}`, event.currentTarget.checked)} />
            ${actionLabel(action)}</label>`)}
        </fieldset>`)}
      </div>`}
      <p class="field">
        <label class="field-label" for="token-expires">${t`Expires after`}</label>
        <select class="select" id="token-expires" value=${values.expires}
          onChange=${(/** @type {any} */ event) => set({ expires: event.currentTarget.value })}>
          ${LIFETIMES.map(([span, label]) => html`<option key=${span} value=${span}>${label}</option>`)}
        </select>
      </p>
      <label class="permission-choice"><input type="checkbox" checked=${values.branchOnly}
        onChange=${(/** @type {any} */ event) => set({ branchOnly: event.currentTarget.checked })} />
        ${t`Writes only to branches`}</label>
      <${Buttons} close=${close} label=${t`Create token`} disabled=${busy} error=${message.text} />
    </form>
  <//>`;
}

/** Return the permissions to read published documents and media. @param {import("../model.js").Model} model */
function readsOf({ permissions, types }) {
  const subjects = ["upload", ...types.map(({ name }) => name)];
  return subjects.flatMap((subject) => (permissions[subject] ?? [])
    .filter((action) => action === "find" || action === "findOne").map((action) => `${subject}.${action}`));
}
