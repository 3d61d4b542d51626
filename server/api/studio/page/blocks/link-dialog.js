/** The dialog for the target of a link. */

import { Dialog } from "../dialog.js";
import { t } from "../language.js";
import { showError, useMessage } from "../store/messages.js";
import { html, useState } from "../vendor/preact.js";
import { isLink } from "./schema.js";

const PLACE = "link-dialog"; // of messages
const WRONG = t`Must begin with https://, mailto:, tel: or, on this site, with /`;

/**
 * @param {{id: string, link: import("./links.js").Link | null, close: () => void,
 *   take: (url: string, text: string) => void}} props
 */
export function LinkDialog({ id, link, close, take }) {
  const [url, setUrl] = useState(link?.url ?? "");
  const [text, setText] = useState("");
  const message = useMessage(PLACE);
  const bare = !link?.url && link?.from === link?.to;
  const typed = (/** @type {(text: string) => void} */ set) => (/** @type {any} */ e) => set(e.target.value);
  const save = () => {
    const trimmed = url.trim();
    const whole = /^[\w-]+(\.[\w-]+)+(\/|$)/.test(trimmed) ? `https://${trimmed}` : trimmed;
    if (!isLink(whole)) return showError(PLACE, WRONG);
    take(whole, text);
    close();
  };
  const press = (/** @type {KeyboardEvent} */ event) => {
    if (event.key !== "Enter" || /** @type {HTMLElement} */ (event.target).tagName !== "INPUT") return;
    event.preventDefault();
    save();
  };
  return html`<${Dialog} label=${t`Link`} close=${close} class="blocks-dialog"><div class="stack" onKeyDown=${press}>
    <div class="field">
      <label class="field-label" for=${`${id}-url`}>${t`Address`}</label>
      <input class="input" id=${`${id}-url`} value=${url} inputmode="url" autocomplete="off" autofocus
        onInput=${typed(setUrl)} aria-invalid=${message.text ? "true" : undefined}
        aria-describedby=${`${id}-url-error`} />
      <p class="field-error" id=${`${id}-url-error`} role="alert">${message.text}</p>
    </div>
    ${bare && html`<div class="field">
      <label class="field-label" for=${`${id}-words`}>${t`Text`}</label>
      <input class="input" id=${`${id}-words`} value=${text} onInput=${typed(setText)} />
    </div>`}
    <p class="dialog-actions">
      <button class="button primary" type="button" onClick=${save}>${link?.url ? t`Change` : t`Insert`}</button>
      ${link?.url && html`<button class="button" type="button" onClick=${() => {
        take("", "");
        close();
      }}>${t`Remove the link`}</button>`}
      <button class="button quiet" type="button" onClick=${close}>${t`Cancel`}</button>
    </p>
  </div><//>`;
}
