/** The page for signing in. */

import { t } from "./language.js";
import { LanguageSelect } from "./preferences.js";
import { signIn } from "./session.js";
import { SIGN_IN, clearMessage, showError, useMessage } from "./store/messages.js";
import { html, useEffect, useRef, useState } from "./vendor/preact.js";

/**
 * @param {{model: import("./model.js").Model, done: () => void}} props
 */
export function SignIn({ model, done }) {
  const message = useMessage(SIGN_IN);
  useEffect(() => {
    document.title = `${t`Sign in`} · ${model.siteName}`;
  }, [model]);
  return html`<main class="alone">
    <h1 class="alone-title">${model.siteName}</h1>
    ${message.text && !message.isError && html`<p class="notice" role="status">${message.text}</p>`}
    ${model.allows("auth", "callback") ? html`<${PasswordForm} done=${done} />` : ""}
    <p class="hint">
      ${t`On the machine that runs the server, open the address that ${html`<code>bifolio serve</code>`} prints. It
        contains a key that signs you in once. For a new key, stop the server with Ctrl-C and start it again.`}
    </p>
    <${LanguageSelect} />
  </main>`;
}

/** @param {{done: () => void}} props */
function PasswordForm({ done }) {
  const message = useMessage(SIGN_IN);
  const [busy, setBusy] = useState(false);
  const [isShown, show] = useState(false);
  const first = useRef(/** @type {HTMLInputElement | null} */ (null));
  useEffect(() => first.current?.focus(), []);

  /** @param {SubmitEvent} event */
  const send = async (event) => {
    event.preventDefault();
    const form = new FormData(/** @type {HTMLFormElement} */ (event.currentTarget));
    setBusy(true);
    clearMessage(SIGN_IN);
    try {
      await signIn(String(form.get("identifier")), String(form.get("password")));
      done();
    } catch (refused) {
      showError(SIGN_IN, /** @type {Error} */ (refused).message);
      setBusy(false);
    }
  };
  return html`<form class="stack" onSubmit=${send}>
    <label class="field">
      <span class="field-label">${t`E-mail address or user name`}</span>
      <input class="input" name="identifier" autocomplete="username" autocapitalize="none" required ref=${first} />
    </label>
    <label class="field">
      <span class="field-label">${t`Password`}</span>
      <input class="input" name="password" type=${isShown ? "text" : "password"} autocapitalize="none"
        spellcheck=${false} autocomplete="current-password" required />
    </label>
    <label class="choice">
      <input type="checkbox" checked=${isShown} onChange=${() => show(!isShown)} />
      ${t`Show password`}
    </label>
    <p class="field-error" role="alert">${message.isError ? message.text : ""}</p>
    <button class="button primary" disabled=${busy}>${t`Sign in`}</button>
  </form>`;
}
