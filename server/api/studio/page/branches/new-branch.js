/** The dialog that creates a branch. */

import { ApiError } from "../api.js";
import { Dialog } from "../dialog.js";
import { t } from "../language.js";
import { clearMessage, showError, useMessage } from "../store/messages.js";
import { reloadContent } from "../store/requests.js";
import { html, useState } from "../vendor/preact.js";
import { createBranch } from "./requests.js";

const DIALOG = "new-branch"; // the place of messages

/**
 * @param {{list: import("./requests.js").Branch[], close: () => void, done: (name: string) => void}} props
 */
export function NewBranch({ list, close, done }) {
  const [name, setName] = useState("");
  const [from, setFrom] = useState(list.find(({ served }) => served)?.name ?? "");
  const [busy, setBusy] = useState(false);
  const message = useMessage(DIALOG);
  const off = busy || !name.trim();
  /** @param {Event} event */
  const send = async (event) => {
    event.preventDefault();
    if (off) return;
    setBusy(true);
    clearMessage(DIALOG);
    try {
      const { data } = await createBranch(name.trim(), from);
      reloadContent();
      done(data.name);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      setBusy(false);
      showError(DIALOG, `${error.message}.`);
    }
  };
  return html`<${Dialog} label=${t`New branch`} close=${close}>
    <form class="stack" onSubmit=${send}>
      <h2 class="dialog-title">${t`New branch`}</h2>
      <p class="field">
        <label class="field-label" for="branch-name">${t`Name`}</label>
        <input class="input" id="branch-name" value=${name} autocomplete="off" required maxlength="200"
          aria-describedby="branch-name-hint branch-error" autofocus
          onInput=${(/** @type {any} */ event) => setName(event.currentTarget.value)} />
        <span class="hint" id="branch-name-hint">${t`For example spring-sale. No spaces.`}</span>
      </p>
      ${list.length > 1 && html`<p class="field">
        <label class="field-label" for="branch-from">${t`Begins as a copy of`}</label>
        <select class="select" id="branch-from" value=${from}
          onChange=${(/** @type {any} */ event) => setFrom(event.currentTarget.value)}>
          ${list.map((one) => html`<option key=${one.name} value=${one.name}>
            ${one.served ? t`Live site (${one.name})` : one.name}</option>`)}
        </select>
      </p>`}
      <p class="field-error" role="alert" id="branch-error">${message.text}</p>
      <div class="dialog-actions">
        <button class="button" type="button" onClick=${close}>${t`Cancel`}</button>
        <button class="button primary" type="submit" aria-disabled=${off ? "true" : undefined}>${t`Create`}</button>
      </div>
    </form>
  <//>`;
}
