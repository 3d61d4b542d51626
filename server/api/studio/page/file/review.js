/** The review of changes before they are saved, for users who have chosen it. */

import { Dialog } from "../dialog.js";
import { t } from "../language.js";
import { Loading } from "../states.js";
import { html, useCallback, useState } from "../vendor/preact.js";
import { useDryRun } from "./changes.js";
import { Differences } from "./diff.js";
import { reviewsSaves, setReviewsSaves } from "./review-choice.js";

/** The checkbox for reviewing changes before saving. */
export function ReviewChoice() {
  const [wanted, set] = useState(reviewsSaves());
  const choose = (/** @type {Event} */ event) => {
    const { checked } = /** @type {HTMLInputElement} */ (event.target);
    setReviewsSaves(checked);
    set(checked);
  };
  return html`<label class="file-choice">
    <input type="checkbox" checked=${wanted} onChange=${choose} /> ${t`Review changes before saving`}
  </label>`;
}

/**
 * Return the function that saves the form. If the user has chosen so, it shows a review first.
 * @param {import("../documents/form.js").Subject} subject
 * @param {any} editing
 * @param {boolean} mayRead  Whether the user may read files.
 * @returns {{send: (publishes: boolean) => void, reviewed: boolean | null, close: () => void}}
 *   `reviewed` is whether the reviewed save publishes the document, or null if there is no review.
 */
export function useReview(subject, editing, mayRead) {
  const [reviewed, review] = useState(/** @type {boolean | null} */ (null));
  const send = useCallback(
    (/** @type {boolean} */ publishes) => (mayRead && reviewsSaves() ? review(publishes) : editing.send(publishes)),
    [editing.send, mayRead],
  );
  return { send, reviewed, close: () => review(null) };
}

/**
 * @param {{subject: import("../documents/form.js").Subject, editing: any, publishes: boolean, close: () => void}} props
 */
export function Review({ subject, editing, publishes, close }) {
  const { files, error } = useDryRun(subject, editing.state, { hasChanges: true, publishes, delayMs: 0 });
  const save = () => {
    close();
    editing.send(publishes);
  };
  const label = publishes ? t`Changes made by publishing` : t`Changes made by saving`;
  return html`<${Dialog} label=${label} close=${close} class="is-wide">
    <h2 class="dialog-title">${label}</h2>
    <div class="review">
      ${files ? html`<${Differences} files=${files} />` : html`<${Loading} label=${t`Checking`} />`}
      ${error && html`<p class="file-note is-wrong" role="alert">${error}</p>`}
      ${files?.length === 0 && !error && html`<p class="file-note">${t`No file changes.`}</p>`}
    </div>
    <div class="dialog-actions">
      <button class="button" type="button" onClick=${close}>${t`Back`}</button>
      <button class="button primary" type="button" autofocus onClick=${save}>
        ${publishes ? t`Publish` : t`Save`}</button>
    </div>
  <//>`;
}
