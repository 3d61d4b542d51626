/** The page of a webhook: its state, test requests, its secret, and its deliveries. */

import { addressTo } from "../addresses.js";
import { ask } from "../api.js";
import { send, sentence } from "../admin/requests.js";
import { ReviewDialog } from "../admin/site-file.js";
import { useStudio } from "../context.js";
import { Question } from "../dialog.js";
import { t } from "../language.js";
import { Link, navigate } from "../router.js";
import { useHeading } from "../site/heading.js";
import { Empty, Failure, Loading, Notice } from "../states.js";
import { PAGE, WEBHOOKS, showError, showNotice } from "../store/messages.js";
import { useRequest } from "../store/requests.js";
import { secondsText, timestamp } from "../text.js";
import { html, useState } from "../vendor/preact.js";
import { Deliveries } from "./deliveries.js";
import { stateOf, webhookPath } from "./requests.js";
import { NewSecret, WebhookDialog } from "./webhook-dialog.js";

const EVERY_MS = 3000;
const OVERLAP = "secret-overlap"; // the id of the text about the old secret

/** @param {{name: string, params: URLSearchParams}} props */
export function WebhookPage({ name, params }) {
  const { model } = useStudio();
  useHeading(model, name);
  const may = model.maySite("webhook", "read");
  const load = (/** @type {AbortSignal} */ signal) => ask("webhooks", { signal });
  const { value, error, retry, reload } = useRequest(may ? "webhooks" : "", load, { everyMs: EVERY_MS });
  const found = /** @type {import("./requests.js").Webhook[] | undefined} */ (value?.data);
  const webhook = found?.find((one) => one.name === name);
  const isGone = !may || (found && !webhook);
  return html`<div class="page site-page people-page">
    <nav><${Link} to=${addressTo("webhooks")}>${t`Webhooks`}<//></nav>
    <header class="page-head">
      <h1 tabindex="-1">${name}</h1>
      ${webhook && html`<${Actions} webhook=${webhook} etag=${value?.etag ?? ""} changed=${reload} />`}
    </header>
    <${Notice} place=${PAGE} />
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
    ${webhook.previousSecretUntil && html`<br /><span id=${OVERLAP}>
      ${t`Requests are also signed with the old secret until ${timestamp(webhook.previousSecretUntil)}.
        A new one can be generated after that.`}</span>`}</p>`;
}

/** @param {{webhook: import("./requests.js").Webhook, etag: string, changed: () => Promise<void>}} props */
function Actions({ webhook, etag, changed }) {
  const { model } = useStudio();
  const [testing, setTesting] = useState(false);
  const [asking, setAsking] = useState(false);
  const [secret, setSecret] = useState("");
  const [changing, setChanging] = useState(/** @type {"" | "edit" | "delete"} */ (""));
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
  const mayWrite = model.maySite("webhook", "write");
  const close = () => setChanging("");
  const mayRotate = model.maySite("webhook", "rotate") && webhook.secretIn === "generated";
  return html`${model.maySite("webhook", "send") && html`
      ${webhook.disabledAt && html`<button class="button primary" type="button" onClick=${enable}>
        ${t`Enable`}</button>`}
      <button class="button" type="button" disabled=${testing} onClick=${test}>
        ${testing ? t`Sending…` : t`Send test`}</button>`}
    ${mayRotate && html`<button class="button" type="button" disabled=${Boolean(webhook.previousSecretUntil)}
      aria-describedby=${webhook.previousSecretUntil ? OVERLAP : undefined} onClick=${() => setAsking(true)}>
      ${t`New secret`}</button>`}
    ${asking && html`<${Question} title=${t`Generate a new secret?`} label=${t`Generate`} confirm=${rotate}
      text=${t`Give it to the receiver within 24 hours. Until then, requests are signed with both secrets.`}
      close=${() => setAsking(false)} />`}
    ${mayWrite && html`
      ${webhook.waiting !== null && html`<button class="button" type="button" onClick=${() => setChanging("edit")}>
        ${t`Edit`}</button>`}
      <button class="button" type="button" onClick=${() => setChanging("delete")}>${t`Delete`}</button>`}
    ${changing === "edit" && html`<${WebhookDialog} webhook=${webhook} etag=${etag} close=${close} reload=${changed}
      done=${async () => {
        close();
        await changed();
        showNotice(PAGE, t`Saved.`);
      }} />`}
    ${changing === "delete" && html`<${ReviewDialog} title=${t`Delete the webhook ${webhook.name}?`} label=${t`Delete`}
      change=${{ path, method: "DELETE" }} etag=${etag} close=${close}
      refused=${async (/** @type {import("../api.js").ApiError} */ error) => {
        close();
        refused(error);
        await changed();
      }}
      done=${() => {
        navigate(addressTo("webhooks"));
        showNotice(WEBHOOKS, t`Deleted ${webhook.name}`);
      }} />`}
    ${secret && html`<${NewSecret} secret=${secret} close=${() => setSecret("")}
      text=${t`Copy it now: it will not be shown again. The old secret works for 24 more hours.`} />`}`;
}
