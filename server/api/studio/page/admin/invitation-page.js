/** The page on which an invited user chooses a password. The code of the invitation is in the URL's fragment. */

import { STUDIO } from "../base.js";
import { t } from "../language.js";
import { signIn } from "../session.js";
import { SIGN_IN, clearMessage, showError, useMessage } from "../store/messages.js";
import { html, useEffect, useState } from "../vendor/preact.js";
import { send, sentence } from "./requests.js";

const MIN_CHARS = 6;

export function InvitationPage() {
  // The code is removed from the URL, so that it does not stay in the browser's history.
  const [code] = useState(() => location.hash.slice(1));
  const [busy, setBusy] = useState(false);
  const [name, setName] = useState("");
  const message = useMessage(SIGN_IN);
  useEffect(() => {
    document.title = t`Choose a password`;
    history.replaceState(history.state, "", location.pathname);
  }, []);
  /** @param {SubmitEvent} event */
  const choose = async (event) => {
    event.preventDefault();
    const form = new FormData(/** @type {HTMLFormElement} */ (event.currentTarget));
    const password = String(form.get("password"));
    setBusy(true);
    clearMessage(SIGN_IN);
    const answer = await send("invitation", { method: "POST", body: { code, password } }, (error) => {
      showError(SIGN_IN, sentence(error));
    });
    setBusy(false);
    if (!answer) return;
    setName(answer.data.username);
    signIn(answer.data.username, password).then(
      () => location.assign(STUDIO),
      () => showError(SIGN_IN, t`You can't sign in with it yet. Ask the person who invited you to allow it.`),
    );
  };
  return html`<div class="alone">
    <h1 class="alone-title" tabindex="-1">${t`Choose a password`}</h1>
    ${name && html`<p class="notice" role="status">${t`Your password is saved. Your user name is ${name}.`}</p>`}
    ${!code && html`<p class="notice">
      ${t`This address has no invitation code. Open the link that you were given.`}</p>`}
    ${code && !name && html`<form class="stack" onSubmit=${choose}>
      <label class="field">
        <span class="field-label">${t`New password`}</span>
        <input class="input" name="password" type="password" autocomplete="new-password" required autofocus
          minlength=${MIN_CHARS} aria-describedby="password-hint" />
        <span class="hint" id="password-hint">${t`At least ${MIN_CHARS} characters.`}</span>
      </label>
      <button class="button primary" disabled=${busy}>${t`Save password`}</button>
    </form>`}
    <p class="field-error" role="alert">${message.isError ? message.text : ""}</p>
  </div>`;
}
