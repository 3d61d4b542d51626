/** The deliveries of a webhook, by state, and a dialog with the request and response of one. */

import { ask } from "../api.js";
import { send, sentence } from "../admin/requests.js";
import { useStudio } from "../context.js";
import { Dialog } from "../dialog.js";
import { plural, t } from "../language.js";
import { Empty, Failure, Loading } from "../states.js";
import { PAGE, showError, showNotice } from "../store/messages.js";
import { keyOf, useRequest } from "../store/requests.js";
import { ago, counted, secondsText, timestamp } from "../text.js";
import { html, useState } from "../vendor/preact.js";
import { resultOf, webhookPath } from "./requests.js";

const EVERY_MS = 3000;
const SHOWN = 50;
const STATES = [["", t`All`], ["waiting", t`Waiting`], ["delivered", t`Delivered`], ["failed", t`Failed`]];

/**
 * @typedef {import("./requests.js").Delivery} Delivery
 */

/** @param {{name: string, state: string, show: (state: string) => void}} props */
export function Deliveries({ name, state, show }) {
  const [before, setBefore] = useState(/** @type {number | null} */ (null));
  const [open, setOpen] = useState("");
  const path = `${webhookPath(name)}/deliveries`;
  const load = (/** @type {AbortSignal} */ signal) =>
    ask(path, { query: { state, before, limit: SHOWN }, signal });
  const { value, error, retry, reload } = useRequest(keyOf(path, state, before), load, { everyMs: EVERY_MS });
  const list = /** @type {Delivery[] | undefined} */ (value?.data);
  return html`<section class="settings" aria-label=${t`Deliveries`}>
    <div class="site-kinds" role="group" aria-label=${t`Show`}>
      ${STATES.map(([key, label]) => html`<button class="button" type="button" key=${key} aria-pressed=${state === key}
        onClick=${() => (setBefore(null), show(key))}>${label}</button>`)}
    </div>
    ${!list && (error ? html`<${Failure} error=${error} again=${retry} />` : html`<${Loading} />`)}
    ${list?.length === 0 && html`<${Empty} title=${t`No deliveries`}>${t`Results are kept for 7 days.`}<//>`}
    ${list && list.length > 0 && html`<ul class="account-list">
      ${list.map((delivery) => html`<li key=${delivery.id}>
        <button class="account-row" type="button" onClick=${() => setOpen(delivery.id)}>
          <span class="account-name">${delivery.event.event}</span>
          <span class="account-note">${aboutOf(delivery)}</span>
          <span class="account-role"><span class=${`account-flag ${isBad(delivery) ? "is-bad" : ""}`}>
            ${resultOf(delivery)}</span></span>
          <time class="account-state" datetime=${delivery.createdAt} title=${timestamp(delivery.createdAt)}>
            ${ago(delivery.createdAt)}</time>
        </button>
      </li>`)}
    </ul>`}
    ${list && (before !== null || value?.meta.more) && html`<nav class="account-pages"
      aria-label=${t`Pages of deliveries`}>
      <button class="button" type="button" disabled=${before === null} onClick=${() => setBefore(null)}>
        ${t`Newest`}</button>
      <button class="button" type="button" disabled=${!value?.meta.more}
        onClick=${() => setBefore(list.at(-1)?.number ?? null)}>${t`Older`}</button>
    </nav>`}
    ${open && html`<${One} path=${`${path}/${encodeURIComponent(open)}`} close=${() => setOpen("")}
      changed=${reload} />`}
  </section>`;
}

/** @param {Delivery} delivery */
const isBad = ({ state, attempts }) => state === "failed" || (state === "waiting" && attempts > 0);

/** Return what a delivery is about, such as "article fog". @param {Delivery} delivery */
const aboutOf = ({ event }) => [event.model, event.documentId, event.locale].filter(Boolean).join(" ");

/**
 * The dialog with a delivery.
 * @param {{path: string, close: () => void, changed: () => Promise<void>}} props
 */
function One({ path, close, changed }) {
  const { model } = useStudio();
  const { value, error, retry } = useRequest(path, (signal) => ask(path, { signal }), { everyMs: EVERY_MS });
  const delivery = /** @type {Delivery | undefined} */ (value?.data);
  const replay = async () => {
    const options = { method: "POST" };
    const answer = await send(`${path}/replay`, options, (refused) => showError(PAGE, sentence(refused)));
    if (answer) showNotice(PAGE, t`The delivery will be sent again.`);
    close();
    await changed();
  };
  return html`<${Dialog} label=${t`Delivery`} close=${close} class="wide">
    <h2 class="dialog-title">${t`Delivery`}</h2>
    ${!delivery && (error ? html`<${Failure} error=${error} again=${retry} />` : html`<${Loading} />`)}
    ${delivery && html`<p>${resultOf(delivery)}, ${timesOf(delivery)}
        ${delivery.nextAttemptAt && `, ${t`next at ${timestamp(delivery.nextAttemptAt)}`}`}</p>
      ${delivery.error && html`<p class="field-error">${delivery.error}</p>`}
      ${delivery.request
        ? html`<h3>${t`Request`}</h3>
            <pre class="code" tabindex="0" aria-label=${t`Request`}>${requestText(delivery.request)}</pre>
            <h3>${t`Response`}</h3>
            <pre class="code" tabindex="0" aria-label=${t`Response`}>${delivery.response?.body || t`(empty)`}</pre>
            <p class="hint">${t`After ${secondsText(delivery.response?.seconds ?? 0)} s`}</p>`
        : html`<p class="hint">${t`Nothing was sent yet.`}</p>`}`}
    <div class="dialog-actions">
      <button class="button" type="button" onClick=${close}>${t`Close`}</button>
      ${delivery && delivery.state !== "waiting" && model.maySite("webhook", "send") && html`<button
        class="button primary" type="button" onClick=${replay}>${t`Send again`}</button>`}
    </div>
  <//>`;
}

/** @param {Delivery} delivery */
const timesOf = ({ attempts }) => plural(attempts, { one: "{0} attempt", other: "{0} attempts" });

/** @param {{headers: Record<string, string>, body: string, size: number}} request */
function requestText({ headers, body, size }) {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  const isCut = new TextEncoder().encode(body).length < size;
  return `${lines.join("\n")}\n\n${isCut ? `${body}…\n\n(${t`${counted(size)} bytes in all`})` : indented(body)}`;
}

/** @param {string} body */
function indented(body) {
  try {
    return JSON.stringify(JSON.parse(body), null, 2);
  } catch {
    return body;
  }
}
