/** The dialogs that create, edit and delete a webhook. They show the changed lines of site.yaml before saving. */

import { sentence } from "../admin/requests.js";
import { Secret } from "../admin/secret.js";
import { ReviewDialog } from "../admin/site-file.js";
import { useStudio } from "../context.js";
import { Buttons, Dialog } from "../dialog.js";
import { useInvalidFocus } from "../invalid-focus.js";
import { plural, t } from "../language.js";
import { Choice, Flag, Input } from "../types/inputs.js";
import { html, useState } from "../vendor/preact.js";
import { KINDS, webhookPath } from "./requests.js";

const HIDDEN = "•••"; // stands for the value of a header in a form

/**
 * @typedef {import("./requests.js").Webhook} Webhook
 * @typedef {import("../types/inputs.js").Values} Values
 */

/**
 * The dialog that creates a webhook, or edits one. `etag` is that of the list of webhooks.
 * @param {{webhook?: Webhook, etag: string, close: () => void, done: (answer: any, name: string) => void,
 *   reload: () => Promise<void>}} props
 */
export function WebhookDialog({ webhook, etag, close, done, reload }) {
  const { model } = useStudio();
  // While the dialog is open, the list is loaded again. The first entity tag is that of the values in the form.
  const [read, setRead] = useState(etag);
  const [values, setValues] = useState(() => valuesOf(webhook));
  const [reviewing, setReviewing] = useState(false);
  const [wrong, setWrong] = useState({ key: "", text: "" });
  const set = (/** @type {Values} */ part) => setValues({ ...values, ...part });
  useInvalidFocus(wrong, ".dialog");
  const title = webhook ? t`Edit webhook` : t`New webhook`;
  /** @param {import("../api.js").ApiError} error */
  const refused = async (error) => {
    if (error.status === 412) await reload();
    const path = error.details?.errors?.[0].path ?? [];
    const hidden = hiddenIn(values).join(", ");
    setRead("");
    setWrong({
      key: path[0] ?? "",
      text: error.status === 412 ? t`Someone else has changed site.yaml meanwhile. Try again.`
        : path.join() === "headers" && values.url !== webhook?.url && hidden
          ? t`A new URL gets no hidden values. Enter the values of these headers again, or delete their lines:
              ${hidden}.`
          : sentence(error),
    });
    setReviewing(false);
  };
  if (reviewing) {
    const change = webhook
      ? { path: webhookPath(webhook.name), data: dataOf(values, webhook) }
      : { path: "webhooks", method: "POST", data: { name: values.name.trim(), ...dataOf(values) } };
    return html`<${ReviewDialog} title=${webhook ? t`Change the webhook ${webhook.name}?`
        : t`Create the webhook ${values.name}?`} label=${webhook ? t`Save` : t`Create`} change=${change}
      etag=${read || etag} isBack close=${() => setReviewing(false)} refused=${refused}
      note=${webhook?.enabled && !values.enabled && html`<p>${plural(webhook.waiting ?? 0, {
        one: "The webhook is disabled, and {0} waiting delivery is dropped.",
        other: "The webhook is disabled, and {0} waiting deliveries are dropped.",
      })}</p>`}
      done=${(/** @type {any} */ answer) => done(answer, values.name.trim())} />`;
  }
  const field = (/** @type {string} */ name) => ({ values, set, name, autofocus: wrong.key === name,
    "aria-invalid": wrong.key === name ? "true" : undefined });
  const types = [...model.listed.map(({ name, label }) => [name, label]), ["upload", t`Media`]];
  return html`<${Dialog} label=${title} close=${close} class="is-wide">
    <form class="stack" onSubmit=${(/** @type {Event} */ event) => {
      event.preventDefault();
      const unknown = hiddenIn(values).filter((header) => !webhook?.headers.includes(header)).join(", ");
      setWrong(unknown ? { key: "headers", text: t`${HIDDEN} stands for no value here. Enter one for: ${unknown}.` }
        : { key: "", text: "" });
      setReviewing(!unknown);
    }}>
      <h2 class="dialog-title">${title}</h2>
      ${!webhook && html`<${Input} ...${field("name")} label=${t`Name`} required maxlength="64"
        pattern="[A-Za-z0-9][A-Za-z0-9_\\-]*" hint=${t`Letters, digits, - and _. It can't be changed later.`} />`}
      <${Input} ...${field("url")} label="URL" required maxlength="2000"
        hint=${webhook?.url.endsWith("…") ? t`What comes after the host is hidden. To keep it, don't change the URL.`
          : ""} />
      <${Picks} ...${field("events")} label=${t`Events`} choices=${KINDS} />
      <${Picks} ...${field("types")} label=${t`Content types`} choices=${types} />
      ${model.locales.length > 1 && html`<${Picks} ...${field("locales")} label=${t`Locales`}
        choices=${model.locales.map(({ code, name }) => [code, name])} />`}
      <${Choice} ...${field("status")} label=${t`Status`} choices=${["", "published", "draft"]}
        labels=${{ "": t`All`, published: t`Published`, draft: t`Draft` }} />
      <${Input} ...${field("debounce")} label=${t`Wait for a pause`}
        hint=${t`For example 10s: one request for all changes, after a pause of this length.`} />
      <${Input} ...${field("headers")} label=${t`Headers`} lines
        hint=${webhook?.headers.length
          ? t`One on each line. ${HIDDEN} stands for a hidden value. To remove a header, delete its line.`
          : t`One on each line, for example Authorization: Bearer abc.`} />
      <${Flag} ...${field("enabled")} label=${t`Enabled`} />
      ${!webhook && html`<p class="hint">
        ${t`After saving, you get the secret with which the receiver checks signatures.`}</p>`}
      <${Buttons} close=${close} label=${t`Review and save`} error=${wrong.text} />
    </form>
  <//>`;
}

/**
 * Checkboxes for the values of a list. If none is checked, the list is empty, which stands for all values.
 * @param {{values: Values, set: (part: Values) => void, name: string, label: string, choices: string[][]}} props
 */
function Picks({ values, set, name, label, choices }) {
  /** @type {string[]} */
  const chosen = values[name];
  const others = chosen.filter((one) => !choices.some(([key]) => key === one)).map((one) => [one, one]);
  return html`<fieldset class="permission-group">
    <legend>${label}</legend>
    <span class="hint">${t`If none is checked, all are sent.`}</span>
    ${[...choices, ...others].map(([key, text]) => html`<label key=${key} class="permission-choice">
      <input type="checkbox" checked=${chosen.includes(key)} onChange=${(/** @type {any} */ event) =>
        set({ [name]: [...chosen.filter((one) => one !== key), ...(event.currentTarget.checked ? [key] : [])] })} />
      ${text}${key.includes(".") && html` <span class="hint">${key}</span>`}</label>`)}
  </fieldset>`;
}

/** Return what a form shows for a webhook. @param {Webhook} [webhook] @returns {Values} */
function valuesOf(webhook) {
  const { name = "", url = "", events = [], types = [], locales = [], status = [], debounce = 0, headers = [],
    enabled = true } = webhook ?? {};
  return {
    name, url, events, types, locales, enabled,
    status: status.length === 1 ? status[0] : "",
    debounce: debounce ? `${debounce}s` : "",
    headers: headers.map((header) => `${header}: ${HIDDEN}\n`).join(""),
  };
}

/** Return the names and values of the headers in a form. @param {Values} values @returns {string[][]} */
function headersOf({ headers }) {
  const lines = /** @type {string} */ (headers).split("\n").filter((line) => line.trim());
  return lines.map((line) => line.split(/:(.*)/s).map((part) => part.trim()));
}

/** Return the names of the headers whose values are hidden. @param {Values} values */
const hiddenIn = (values) => headersOf(values).filter(([, value]) => value === HIDDEN).map(([name]) => name);

/** Return what is sent for a form. Hidden values are left out. @param {Values} values @param {Webhook} [webhook] */
function dataOf(values, webhook) {
  const { url, events, types, locales, status, debounce, enabled } = values;
  const written = headersOf(values);
  const removed = (webhook?.headers ?? []).filter((name) => !written.some(([one]) => one === name));
  return {
    ...(url === webhook?.url ? {} : { url: url.trim() }),
    events, types, locales, enabled,
    status: status ? [status] : [],
    debounce: debounce.trim() || null,
    headers: Object.fromEntries([
      ...removed.map((name) => [name, null]),
      ...written.filter(([, value]) => value !== HIDDEN).map(([name, value = ""]) => [name, value]),
    ]),
  };
}

/** The dialog that shows a new secret, once. @param {{text: string, secret: string, close: () => void}} props */
export function NewSecret({ text, secret, close }) {
  return html`<${Dialog} label=${t`New secret`} close=${close}>
    <h2 class="dialog-title">${t`New secret`}</h2>
    <p>${text}</p>
    <${Secret} label=${t`Secret`} text=${secret} />
    <div class="dialog-actions">
      <button class="button primary" type="button" onClick=${close}>${t`Done`}</button>
    </div>
  <//>`;
}
