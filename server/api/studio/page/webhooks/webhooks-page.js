/** The list of webhooks, with the result of the last delivery. */

import { addressTo } from "../addresses.js";
import { ask } from "../api.js";
import { useStudio } from "../context.js";
import { t } from "../language.js";
import { Link, navigate } from "../router.js";
import { useHeading } from "../site/heading.js";
import { Empty, Failure, Loading, Notice } from "../states.js";
import { WEBHOOKS } from "../store/messages.js";
import { useRequest } from "../store/requests.js";
import { ago } from "../text.js";
import { html, useState } from "../vendor/preact.js";
import { stateOf } from "./requests.js";
import { NewSecret, WebhookDialog } from "./webhook-dialog.js";

const EVERY_MS = 5000;

export function WebhooksPage() {
  const { model } = useStudio();
  useHeading(model, t`Webhooks`);
  const may = model.maySite("webhook", "read");
  const load = (/** @type {AbortSignal} */ signal) => ask("webhooks", { signal });
  const [creating, setCreating] = useState(false);
  const [made, setMade] = useState(/** @type {{name: string, secret: string} | null} */ (null));
  const { value, error, retry, reload } = useRequest(may ? "webhooks" : "", load, { everyMs: EVERY_MS });
  const list = /** @type {import("./requests.js").Webhook[] | undefined} */ (value?.data);
  return html`<div class="page site-page people-page">
    <header class="page-head">
      <h1 tabindex="-1">${t`Webhooks`}</h1>
      ${list && model.maySite("webhook", "write") && html`<button class="button primary" type="button"
        onClick=${() => setCreating(true)}>${t`New webhook`}</button>`}
    </header>
    <${Notice} place=${WEBHOOKS} />
    ${!may && html`<${Empty} title=${t`Your role can't see webhooks`}>
      ${t`An administrator can grant it with webhook: [read].`}<//>`}
    ${may && !list && error && html`<${Failure} error=${error} again=${retry} />`}
    ${may && !list && !error && html`<${Loading} />`}
    ${list?.length === 0 && html`<${Empty} title=${t`No webhooks yet`}>
      ${t`A webhook sends a request to a URL whenever content changes.`}<//>`}
    ${list && list.length > 0 && html`<ul class="account-list">
      ${list.map((webhook) => {
        const state = stateOf(webhook);
        return html`<li key=${webhook.name} class="account-row">
          <${Link} class="account-name" to=${addressTo("webhook", { name: webhook.name })}>${webhook.name}<//>
          <span class="account-note">${webhook.url}</span>
          <span class="account-role">
            <span class=${`account-flag ${state.isBad ? "is-bad" : ""}`}>${state.text}</span></span>
          <span class="account-state">${webhook.last?.attemptedAt ? t`Sent ${ago(webhook.last.attemptedAt)}`
            : ""}</span>
        </li>`;
      })}
    </ul>`}
    ${creating && html`<${WebhookDialog} etag=${value?.etag ?? ""} close=${() => setCreating(false)} reload=${reload}
      done=${(/** @type {any} */ answer, /** @type {string} */ name) => {
        setCreating(false);
        setMade({ name, secret: answer.meta.secret });
      }} />`}
    ${made && html`<${NewSecret} secret=${made.secret} text=${t`Give the secret to the receiver, which can use it to
      check signatures. It is not shown again.`} close=${() => navigate(addressTo("webhook", { name: made.name }))} />`}
  </div>`;
}
