/** A text to copy, such as a token or a link, which is shown only once. */

import { t } from "../language.js";
import { html, useState } from "../vendor/preact.js";

/** @param {{label: string, text: string}} props */
export function Secret({ label, text }) {
  const [copied, setCopied] = useState("");
  const copy = () =>
    navigator.clipboard.writeText(text).then(
      () => setCopied(t`Copied`),
      () => setCopied(t`The browser does not allow copying. Select the text and copy it.`),
    );
  return html`<div class="field">
    <label class="field-label" for="secret">${label}</label>
    <div class="secret">
      <input class="input" id="secret" readonly value=${text}
        onFocus=${(/** @type {any} */ event) => event.currentTarget.select()} />
      <button class="button" type="button" onClick=${copy}>${t`Copy`}</button>
    </div>
    <span class="hint" role="status">${copied}</span>
  </div>`;
}
