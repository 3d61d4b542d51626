/** The page of a webhook: its state, test requests, its secret, and its deliveries. */

import { addressTo } from "../addresses.js";
import { ask } from "../api.js";
import { send, sentence } from "../admin/requests.js";
import { Secret } from "../admin/secret.js";
import { useStudio } from "../context.js";
import { Dialog, Question } from "../dialog.js";
import { t } from "../language.js";
import { Link, navigate } from "../router.js";
import { useHeading } from "../site/heading.js";
import { Empty, Failure, Loading } from "../states.js";
import { PAGE, showError, showNotice, useMessage } from "../store/messages.js";
import { useRequest } from "../store/requests.js";
import { secondsText, timestamp } from "../text.js";
import { html, useState } from "../vendor/preact.js";
import { Deliveries } from "./deliveries.js";
import { stateOf, webhookPath } from "./requests.js";

const EVERY_MS = 3000;

/** @param {{name: string, params: URLSearchParams}} props */
export function WebhookPage({ name, params }) {
  const { model } = useStudio();
  useHeading(model, name);
  const may = model.maySite("webhook", "read");
  const load = (/** @type {AbortSignal} */ signal) => ask("webhooks", { signal });
  const { value, error, retry, reload } = useRequest(may ? "webhooks" : "", load, { everyMs: EVERY_MS });
  const message = useMessage(PAGE);
  const found = /** @type {import("./requests.js").Webhook[] | undefined} */ (value?.data);
  const webhook = found?.find((one) => one.name === name);
  const isGone = !may || (found && !webhook);
  return html`<div class="page site-page people-page">
    <nav><${Link} to=${addressTo("webhooks")}>${t`Webhooks`}<//></nav>
    <header class="page-head">
      <h1 tabindex="-1">${name}</h1>
      ${webhook && html`<${Actions} webhook=${webhook} changed=${reload} />`}
    </header>
    <p class=${message.isError ? "field-error" : "site-told"} role=${message.isError ? "alert" : "status"}>
      ${message.text}</p>
    ${isGone && html`<${Empty} title=${t`Webhook not found`}>${t`It does not exist, or your role can't see it.`}<//>`}
    ${may && !found && (error ? html`<${Failure} error=${error} again=${retry} />` : html`<${Loading} />`)}
    ${webhook && html`<${Facts} webhook=${webhook} />
      ${webhook.waiting === null
        ? html`<${Empty} title=${t`Your role can't see deliveries`}>
            ${t`Deliveries contain all content, and your role can't read all of it.`}<//>`
        : html`<${Deliveries} name=${name} state=${params.get("state") ?? ""} show=${(/** @type {string} */ state) =>
            navigate(addressTo("webhook", { name }, state ? { state } : {}), { replace: true })} />`}`}
  </div>`;
}

/** @param {{webhook: import("./requests.js").Webhook}} props */
function Facts({ webhook }) {
  const { text } = stateOf(webhook);
  const what = [...webhook.events, ...webhook.types].join(", ") || t`all events`;
  return html`<p class="site-note">${t`${text}. Sends ${what} to ${webhook.url}`}
    ${webhook.problem ? html`<br />${webhook.problem}` : ""}
    ${webhook.previousSecretUntil && html`<br />${t`Requests are also signed with the old secret
      until ${timestamp(webhook.previousSecretUntil)}.`}`}</p>`;
}

/** @param {{webhook: import("./requests.js").Webhook, changed: () => Promise<void>}} props */
function Actions({ webhook, changed }) {
  const { model } = useStudio();
  const [testing, setTesting] = useState(false);
  const [asking, setAsking] = useState(false);
  const [secret, setSecret] = useState("");
  const path = webhookPath(webhook.name);
  const refused = (/** @type {import("../api.js").ApiError} */ error) => showError(PAGE, sentence(error));
  const test = async () => {
    setTesting(true);
    const answer = await send(`${path}/test`, { method: "POST" }, refused);
    setTesting(false);
    if (!answer) return;
    const { succeeded, status, error, seconds } = answer.data;
    if (succeeded) showNotice(PAGE, t`The receiver responded with ${status} in ${secondsText(seconds)} s.`);
    else showError(PAGE, t`The test failed: ${error}`);
  };
  const enable = async () => {
    const answer = await send(`${path}/enable`, { method: "POST" }, refused);
    if (answer) showNotice(PAGE, t`The webhook is enabled for changes from now on.`);
    await changed();
  };
  const rotate = async () => {
    setAsking(false);
    const answer = await send(`${path}/secret`, { method: "POST" }, refused);
    if (answer) setSecret(answer.meta.secret);
    await changed();
  };
  const mayRotate = model.maySite("webhook", "rotate") && webhook.secretIn === "generated";
  return html`${model.maySite("webhook", "send") && html`
      ${webhook.disabledAt && html`<button class="button primary" type="button" onClick=${enable}>
        ${t`Enable`}</button>`}
      <button class="button" type="button" disabled=${testing} onClick=${test}>
        ${testing ? t`Sending…` : t`Send test`}</button>`}
    ${mayRotate && !webhook.previousSecretUntil && html`<button class="button" type="button"
      onClick=${() => setAsking(true)}>${t`New secret`}</button>`}
    ${asking && html`<${Question} title=${t`Generate a new secret?`} label=${t`Generate`} confirm=${rotate}
      text=${t`Give it to the receiver within 24 hours. Until then, requests are signed with both secrets.`}
      close=${() => setAsking(false)} />`}
    ${secret && html`<${Dialog} label=${t`New secret`} close=${() => setSecret("")}>
      <h2 class="dialog-title">${t`New secret`}</h2>
      <p>${t`Copy it now: it will not be shown again. The old secret works for 24 more hours.`}</p>
      <${Secret} label=${t`Secret`} text=${secret} />
      <div class="dialog-actions">
        <button class="button primary" type="button" onClick=${() => setSecret("")}>${t`Done`}</button>
      </div>
    <//>`}`;
}
