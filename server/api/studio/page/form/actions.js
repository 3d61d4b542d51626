/** The bar of a form: what state it is in, and the buttons. What a role may not do is not shown. */

import { ApiError } from "../api.js";
import { addressTo } from "../addresses.js";
import { useStudio } from "../context.js";
import { Link, navigate } from "../router.js";
import { StatusMark } from "../status.js";
import { ago, timestamp } from "../text.js";
import { html } from "../vendor/preact.js";
import { remove } from "./writing.js";

/**
 * @param {{subject: import("./editing.js").Subject, editing: any, status?: any,
 *   rights: import("./rights.js").Rights, changed: string[],
 *   heard: boolean}} props
 */
export function Actions({ subject, editing, status, rights, changed, heard }) {
  const { id, drafts } = subject;
  const { state, send } = editing;
  const draftAlone = drafts && status !== "published";
  return html`<div class="actions">
    <div class="actions-state">
      ${status && html`<${StatusMark} status=${status} />`}
      ${state.version && html`<time class="actions-time" datetime=${state.version.document.updatedAt}
        title=${timestamp(state.version.document.updatedAt)}>Changed ${ago(state.version.document.updatedAt)}</time>`}
      ${!heard && html`<span class="actions-told is-wrong">No connection. What you type is kept here.</span>`}
      ${!rights.write && html`<span class="actions-time">Your role may not change this</span>`}
      <span class=${`actions-told ${state.told.wrong ? "is-wrong" : ""}`} role="status">
        ${state.told.text || (changed.length ? countOf(changed.length) : "")}
      </span>
    </div>
    <div class="actions-buttons">
      ${id && html`<${More} ...${{ subject, editing, rights }} />`}
      ${rights.write && html`<button class=${`button ${rights.publish ? "" : "primary"}`} type="button"
        aria-keyshortcuts="Control+S" disabled=${Boolean(state.busy) || (id !== "" && !changed.length)}
        onClick=${() => send(false)}>
        ${state.busy === "saving" ? "Saving…" : drafts ? "Save draft" : "Save"}
      </button>`}
      ${rights.publish && html`<button class="button primary" type="button" onClick=${() => send(true)}
        disabled=${Boolean(state.busy) || (id !== "" && !changed.length && !draftAlone)}>
        ${state.busy === "publishing" ? "Publishing…" : "Publish"}
      </button>`}
    </div>
  </div>`;
}

/** @param {number} count */
const countOf = (count) => (count === 1 ? "One field is not saved" : `${count} fields are not saved`);

/**
 * What is done more rarely.
 * @param {{subject: import("./editing.js").Subject, editing: any, rights: import("./rights.js").Rights}} props
 */
function More({ subject, editing, rights }) {
  const { type, id } = subject;
  const { refresh } = useStudio();
  const copy = rights.create && addressTo("create", { type: type.name }, { from: id });
  const drop = async () => {
    if (!confirm("Delete this document? What is published and its draft are gone then, in all locales.")) return;
    try {
      await remove({ type, id, locale: {}, draft: false });
      editing.update({ base: editing.state.values });
      refresh();
      navigate(addressTo("list", { type: type.name }), { replace: true, unguarded: true });
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      editing.update({ told: { text: error.message, wrong: true } });
    }
  };
  return html`
    ${copy && html`<${Link} class="button quiet" to=${copy}>Duplicate<//>`}
    ${rights.remove && html`<button class="button quiet" type="button" onClick=${drop}>Delete</button>`}
  `;
}
