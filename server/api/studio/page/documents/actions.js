/** The bar of a form, with the form's state and buttons. Actions that the user's role does not permit are not shown. */

import { plural, t } from "../language.js";
import { focusField } from "../form/focus.js";
import { FORM, useMessage } from "../store/messages.js";
import { ago, labelOf, timestamp } from "../text.js";
import { html } from "../vendor/preact.js";
import { More } from "./more.js";
import { openPanel } from "./panel-address.js";
import { StatusMark } from "./status.js";

const MOST_FAULTS = 8; // named in the bar

/**
 * @param {{subject: import("./form.js").Subject, editing: any, status?: any,
 *   rights: import("./rights.js").Rights, changed: string[],
 *   send: (publishes: boolean) => void}} props
 */
export function Actions({ subject, editing, status, rights, changed, send }) {
  const { id, drafts } = subject;
  const { state } = editing;
  const message = useMessage(FORM);
  const nothing = Boolean(state.busy) || (id !== "" && !changed.length);
  const unpublished = drafts && status !== "published" && !state.busy;
  return html`<div class="actions">
    <div class="actions-state">
      ${status && html`<${StatusMark} status=${status} />`}
      ${state.version && html`<${Changed} subject=${subject} at=${state.version.document.updatedAt} />`}
      ${!rights.write && !subject.model.isPast && html`<span class="actions-time">
        ${t`Your role can't edit this document`}</span>`}
      <span class=${`actions-told ${message.isError ? "is-wrong" : ""}`} role="status">
        ${message.text || (changed.length ? countOf(changed.length) : "")}
        ${message.isError && html`<${Faults} paths=${Object.keys(state.errors)} />`}
      </span>
    </div>
    <div class="actions-buttons">
      ${id && html`<${More} ...${{ subject, editing, status, rights, changed }} />`}
      ${rights.write && html`<${Action} class=${rights.publish ? "" : "primary"} shortcut="Control+S" off=${nothing}
        act=${() => send(false)}>
        ${state.busy === "saving" ? t`Saving…` : drafts ? t`Save draft` : t`Save`}
      <//>`}
      ${rights.publish && html`<${Action} class="primary" off=${nothing && !unpublished} act=${() => send(true)}>
        ${state.busy === "publishing" ? t`Publishing…` : t`Publish`}
      <//>`}
    </div>
  </div>`;
}

/** The invalid fields, each as a link to it. @param {{paths: string[]}} props */
function Faults({ paths }) {
  return paths.slice(0, MOST_FAULTS).map((path, index) => html`${index ? ", " : ": "}<button class="text-button"
    key=${path} type="button" onClick=${() => focusField(path.split("."))}>${path.split(".").map(labelOf).join(" › ")}
  </button>`);
}

/**
 * A button that keeps the focus even if it has nothing to do, for example after a save.
 * @param {{class: string, off: boolean, act: () => void, shortcut?: string, children?: any}} props
 */
function Action({ class: name, off, act, shortcut, children }) {
  return html`<button class=${`button ${name}`} type="button" aria-keyshortcuts=${shortcut}
    aria-disabled=${off ? "true" : undefined} onClick=${() => off || act()}>${children}</button>`;
}

/**
 * The time of the last change, with a link to the history.
 * @param {{subject: import("./form.js").Subject, at: string}} props
 */
function Changed({ subject, at }) {
  const time = html`<time datetime=${at} title=${timestamp(at)}>${t`Changed ${ago(at)}`}</time>`;
  if (!subject.model.allows("history", "read")) return html`<span class="actions-time">${time}</span>`;
  return html`<button class="actions-time actions-link" type="button"
    onClick=${() => openPanel("history")}>${time}</button>`;
}

/** @param {number} count */
const countOf = (count) => plural(count, { one: "One field is not saved", other: "{0} fields are not saved" });
