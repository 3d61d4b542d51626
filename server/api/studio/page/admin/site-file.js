/**
 * Changes to site.yaml: the dialog that shows the changed lines before they are saved.
 *
 * If someone else has changed site.yaml meanwhile, the server refuses the change. The page then loads the new state,
 * and keeps what the user has entered.
 */

import { Buttons, Dialog } from "../dialog.js";
import { Differences } from "../file/diff.js";
import { t } from "../language.js";
import { Loading } from "../states.js";
import { showError, useMessage } from "../store/messages.js";
import { html, useEffect, useState } from "../vendor/preact.js";
import { ifMatch, send, sentence } from "./requests.js";

const DIALOG = "site-file"; // the place of messages

/**
 * @typedef {object} SiteFileChange
 * @property {string} path
 * @property {string} [method]
 * @property {any} [data]
 */

/**
 * @param {{title: string, change: SiteFileChange, etag: string, close: () => void, done: (answer: any) => void,
 *   refused: (error: import("../api.js").ApiError) => void, label?: string, note?: any, isBack?: boolean}} props
 *   `isBack` is whether `close` returns to a form.
 */
export function ReviewDialog({ title, change, etag, close, done, refused, label = t`Save`, note, isBack }) {
  const [files, setFiles] = useState(/** @type {any[] | null} */ (null));
  const [busy, setBusy] = useState(false);
  const message = useMessage(DIALOG);
  const { path, method = "PUT", data } = change;
  const options = { method, headers: ifMatch(etag), ...(data ? { body: { data } } : {}) };
  useEffect(() => {
    send(path, { ...options, query: { dryRun: "true" } }, refused).then((answer) => {
      if (answer) setFiles(answer.data.files);
    });
  }, []);
  const save = async () => {
    setBusy(true);
    const answer = await send(path, options, (error) => {
      setBusy(false);
      if (error.status === 0) showError(DIALOG, sentence(error));
      else refused(error);
    });
    if (answer) done(answer);
  };
  return html`<${Dialog} label=${title} close=${close} class="is-wide">
    <h2 class="dialog-title">${title}</h2>
    ${note}
    ${!files && html`<${Loading} />`}
    ${files?.length === 0 && html`<p>${t`This changes nothing in site.yaml.`}</p>`}
    ${files && files.length > 0 && html`<${Differences} files=${files} />`}
    <${Buttons} close=${close} label=${label} confirm=${save} disabled=${busy || !files}
      error=${message.text} isBack=${isBack} />
  <//>`;
}

export const CHANGED_MEANWHILE =
  t`Someone else has changed site.yaml meanwhile. This page shows the new state, with your changes on top.
    Check them and save again.`;
