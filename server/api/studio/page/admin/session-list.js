/** The sessions of a user, with buttons that end them. */

import { ask } from "../api.js";
import { t } from "../language.js";
import { showError, useMessage } from "../store/messages.js";
import { useRequest } from "../store/requests.js";
import { ago, timestamp } from "../text.js";
import { html } from "../vendor/preact.js";
import { send, sentence } from "./requests.js";

const PLACE = "sessions"; // of messages

/** @param {{path: string, name: string, changed?: () => void}} props */
export function SessionList({ path, name, changed }) {
  const { value, error, reload } = useRequest(path, (signal) => ask(path, { signal }));
  const message = useMessage(PLACE);
  const sessions = /** @type {any[] | undefined} */ (value?.data);
  /** @param {string} place */
  const end = async (place) => {
    const answer = await send(place, { method: "DELETE" }, (refused) => showError(PLACE, sentence(refused)));
    if (!answer) return;
    await reload();
    changed?.();
  };
  return html`<section class="sessions" aria-label=${t`Sessions`}>
    <h3 class="sessions-title">${t`Sessions`}</h3>
    <p class="field-error" role="alert">${message.text || (error && !sessions ? sentence(error) : "")}</p>
    ${sessions?.length === 0 && html`<p class="hint">${t`No sessions are open in a browser.`}</p>`}
    ${sessions && sessions.length > 0 && html`<ul class="sessions-list">
      ${sessions.map((session) => html`<li key=${session.id} class="session">
        <span>${deviceText(session.deviceName) || t`Unknown device`}</span>
        <span class="account-note">
          ${t`Signed in ${html`<time datetime=${session.loginAt} title=${timestamp(session.loginAt)}>
            ${ago(session.loginAt)}</time>`}`}</span>
        <button class="button" type="button" onClick=${() => end(`${path}/${session.id}`)}>
          ${t`End`}<span class="unseen">
            ${" "}${t`the session on ${deviceText(session.deviceName) || t`an unknown device`}`}</span></button>
      </li>`)}
    </ul>`}
    <button class="button" type="button" onClick=${() => end(path)}>
      ${t`Sign out everywhere`}<span class="unseen">: ${name}</span></button>
  </section>`;
}

/** Return the name of a device, such as "Safari on Linux". @param {string | null} name */
function deviceText(name) {
  const [browser, system] = (name ?? "").split(" on ");
  return system ? t`${browser} on ${system}` : browser;
}
