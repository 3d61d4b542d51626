/** The bar with actions for the selected rows of a list. An action changes all rows or none, and can be undone. */

import { t } from "../language.js";
import { BULK, clearMessage, offerUndo, showError, useMessage } from "../store/messages.js";
import { counted } from "../text.js";
import { html, useEffect, useState } from "../vendor/preact.js";

/**
 * @typedef {import("./resource.js").Resource} Resource
 * @typedef {import("./resource.js").BulkAction} BulkAction
 * @typedef {import("./resource.js").Row} Row
 */

/**
 * The bar with actions. They need no confirmation, because the message below the bar offers to undo them.
 * @param {{resource: Resource, rows: Row[], state: import("./state.js").ListState,
 *   done: (action: BulkAction) => void, clear: () => void}} props
 */
export function BulkBar({ resource, rows, state, done, clear }) {
  const [busy, setBusy] = useState(false);
  const message = useMessage(BULK);
  useEffect(() => clearMessage(BULK), [rows.length]);
  /** @param {BulkAction} action */
  const act = async (action) => {
    const concerned = rows.filter(action.concerns);
    setBusy(true);
    clearMessage(BULK);
    try {
      const ids = await action.run(concerned, state);
      if (!ids) return;
      offerUndo(`${countOf(resource, concerned)} ${action.done}`, ids);
      done(action);
    } catch (/** @type {any} */ refused) {
      const subject = refused.about ? `${refused.about}: ` : "";
      const rest = refused.done ? t`${countOf(resource, refused.done)} ${action.done} before.`
        : t`Nothing was changed.`;
      showError(BULK, `${subject}${refused.message}. ${rest}`);
    } finally {
      setBusy(false);
    }
  };
  const offered = resource.actions.filter((action) => rows.some(action.concerns));
  return html`<div class=${`bulk ${rows.length ? "is-shown" : ""}`} role="region"
    aria-label=${resource.selectionLabel}>
    <span role="status">${rows.length ? t`${counted(rows.length)} selected` : ""}</span>
    ${rows.length > 0 && html`<span class="bulk-actions">
      ${offered.map((action) => html`<button class="button" type="button" key=${action.name} disabled=${busy}
        onClick=${() => act(action)}>
        ${action.label} ${counted(rows.filter(action.concerns).length)}
      </button>`)}
      <button class="button" type="button" onClick=${clear}>${t`Clear selection`}</button>
    </span>`}
    ${message.text && html`<p class="field-error bulk-error" role="alert">${message.text}</p>`}
  </div>`;
}

/** @param {Resource} resource @param {Row[]} rows */
const countOf = ({ countText }, rows) => countText(rows.length);
