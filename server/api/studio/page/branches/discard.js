/** The dialog that asks for confirmation before a branch is discarded, and lists what is lost. */

import { addressTo } from "../addresses.js";
import { ApiError } from "../api.js";
import { useStudio } from "../context.js";
import { Buttons, Dialog } from "../dialog.js";
import { t } from "../language.js";
import { SERVED, navigate } from "../router.js";
import { Loading } from "../states.js";
import { BRANCHES, clearMessage, showError, showNotice, useMessage } from "../store/messages.js";
import { reloadContent, useRequest } from "../store/requests.js";
import { html, useState } from "../vendor/preact.js";
import { countOf, deleteBranch, readChanges } from "./requests.js";

const DIALOG = "discard"; // the place of messages
const NAMED = 8; // documents that are listed
const FROM_STATUS = /** @type {Record<number, string>} */ ({
  0: t`The server can't be reached. Discard the branch when it is back.`,
  404: t`Someone else has already discarded this branch.`,
  412: t`Someone has changed this branch since you opened this dialog. Look at what would be lost now.`,
});

/** @param {{name: string, close: () => void}} props */
export function Discard({ name, close }) {
  const { model } = useStudio();
  const [busy, setBusy] = useState(false);
  const message = useMessage(DIALOG);
  const { value, error, reload } = useRequest(`discard ${name}`, (signal) => {
    return readChanges(name, { pageSize: NAMED }, { signal });
  });
  // A branch without a common ancestor has no list of changes, but can be discarded.
  const isReady = value || (error && error.status === 409);
  const discard = async () => {
    setBusy(true);
    clearMessage(DIALOG);
    try {
      await deleteBranch(name, value?.meta.to);
      close();
      showNotice(BRANCHES, t`The branch ${name} was discarded.`);
      reloadContent();
      const version = model.version.branch === name ? SERVED : undefined;
      navigate(addressTo("branches", {}, {}, version), { unguarded: true });
    } catch (refused) {
      if (!(refused instanceof ApiError)) throw refused;
      setBusy(false);
      showError(DIALOG, FROM_STATUS[refused.status] ?? `${refused.message}.`);
      if (refused.status === 412) reload();
    }
  };
  return html`<${Dialog} label=${t`Discard ${name}?`} close=${close}>
    <h2 class="dialog-title">${t`Discard ${name}?`}</h2>
    ${value
      ? html`<${Lost} changes=${value.data} meta=${value.meta} />`
      : isReady
        ? html`<p>${t`The branch can't be compared with the live site. Everything on it will be lost.`}</p>`
        : !error && html`<${Loading} />`}
    <p class="field-error" role="alert">${message.text || (!isReady && error ? `${error.message}.` : "")}</p>
    <${Buttons} danger ...${{ close }} label=${t`Discard branch`} disabled=${busy || !isReady} confirm=${discard} />
  <//>`;
}

/** @param {{changes: any[], meta: any}} props */
function Lost({ changes, meta }) {
  // Several versions of a document can have changed.
  const documents = [...new Map(changes.map((one) => [`${one.type} ${one.documentId}`, one])).values()];
  const total = meta.pagination.total - changes.length + documents.length;
  if (meta.from === meta.to) {
    return html`<p>${t`All changes on this branch are already on the live site. Nothing is lost.`}</p>`;
  }
  if (!total) {
    return html`<p>${t`This branch has changes that are not on the live site, but none in documents that you can see.
      These changes will be lost. The studio can't bring them back.`}</p>`;
  }
  return html`
    <p>${t`The changes to ${countOf(total)} on this branch will be lost, because they are not on the live site. The
      studio can't bring them back.`}</p>
    <ul class="dialog-list">
      ${documents.map((one, i) => html`<li key=${i}>${one.title || one.documentId}</li>`)}
      ${total > documents.length && html`<li>${t`and ${total - documents.length} more`}</li>`}
    </ul>`;
}
