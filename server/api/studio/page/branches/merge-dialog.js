/** The dialog that asks for confirmation before a branch is merged into the live site. */

import { Buttons, Dialog } from "../dialog.js";
import { t } from "../language.js";
import { html, useState } from "../vendor/preact.js";
import { FileList } from "./file-list.js";

/**
 * @param {{name: string, compared: import("./changes.js").Compared, close: () => void,
 *   merge: (message: string) => void}} props
 */
export function MergeDialog({ name, compared, close, merge }) {
  const [message, setMessage] = useState("");
  const send = (/** @type {Event} */ event) => {
    event.preventDefault();
    close();
    merge(message);
  };
  return html`<${Dialog} label=${t`Merge ${name}?`} close=${close} class=${compared.files.length ? "is-wide" : ""}>
    <form class="stack" onSubmit=${send}>
      <h2 class="dialog-title">${t`Merge ${name}?`}</h2>
      <p>${t`The changes on this branch become part of the live site. Published documents are public immediately, and
        drafts stay drafts.`}</p>
      <${FileList} compared=${compared} />
      <p class="field">
        <label class="field-label" for="merge-message">${t`Commit message (optional)`}</label>
        <input class="input" id="merge-message" value=${message} maxlength="10000" autocomplete="off"
          placeholder=${t`Merge branch ${name}`}
          onInput=${(/** @type {any} */ event) => setMessage(event.currentTarget.value)} />
      </p>
      <${Buttons} close=${close} label=${t`Merge`} />
    </form>
  <//>`;
}
