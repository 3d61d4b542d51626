/** The dialog with a file's details, the documents that use it, and the actions on it. */

import { useStudio } from "../context.js";
import { Dialog, Question } from "../dialog.js";
import { t } from "../language.js";
import { Failure } from "../states.js";
import { offerUndo, showError, useMessage } from "../store/messages.js";
import { reloadContent, useRequest } from "../store/requests.js";
import { html, useState } from "../vendor/preact.js";
import { Facts, Usage } from "./about.js";
import { MediaDetails } from "./details.js";
import { fileOf } from "./file.js";
import { MoveDialog } from "./move-dialog.js";
import { readFile, removeFile, replaceFile } from "./requests.js";

const PLACE = "media-action"; // of messages

/** @param {{id: string, close: () => void}} props */
export function FilePanel({ id, close }) {
  const { model } = useStudio();
  const { value: file, error, retry } = useRequest(`media ${id}`, () => readFile(id), { isContent: true });
  if (error) {
    return html`<${Dialog} label=${t`Details`} close=${close}><${Failure} error=${error} again=${retry} />
      <p class="dialog-actions"><button class="button" type="button" onClick=${close}>${t`Close`}</button></p><//>`;
  }
  if (!file) return "";
  const about = html`<${Facts} file=${file} /><${Usage} file=${file} /><${Actions} file=${file} close=${close} />`;
  return html`<${MediaDetails} id="media-details" file=${fileOf(file)} close=${close} saved=${() => {}}
    mayDescribe=${model.allows("upload", "upload")} about=${about} />`;
}

/** @param {{file: any, close: () => void}} props */
function Actions({ file, close }) {
  const { model } = useStudio();
  const message = useMessage(PLACE);
  const [open, setOpen] = useState(/** @type {"" | "move" | "delete"} */ (""));
  const [mayUpload, mayDelete] = [model.allows("upload", "upload"), model.allows("upload", "destroy")];
  /** @param {() => Promise<string[]>} act @param {string} done */
  const run = async (act, done) => {
    setOpen("");
    try {
      ended(await act(), done);
    } catch (/** @type {any} */ error) {
      showError(PLACE, error.message);
    }
  };
  /** @param {string[]} ids @param {string} done */
  const ended = (ids, done) => {
    offerUndo(done, ids);
    close();
    setTimeout(reloadContent); // after the dialog is gone, because its file may be gone, too
  };
  const remove = () => run(() => removeFile(file), `${file.name} deleted`);
  /** @param {any} event */
  const replace = ({ target }) => {
    const [chosen] = target.files;
    target.value = "";
    if (chosen) run(() => replaceFile(file, chosen), t`The content of ${file.name} was replaced`);
  };
  return html`<div class="media-actions">
    ${mayUpload && html`<label class="button media-choose">${t`Replace`}
      <input class="unseen" type="file" accept=${file.mime} onChange=${replace} /></label>`}
    ${mayUpload && mayDelete && model.isServed && html`<button class="button" type="button"
      onClick=${() => setOpen("move")}>${t`Move or rename`}</button>`}
    ${mayDelete && html`<button class="button" type="button"
      onClick=${() => (model.isServed ? remove() : setOpen("delete"))}>${t`Delete`}</button>`}
    ${mayDelete && !model.isServed && html`<span class="hint">${t`Files can be moved only on the live site.`}</span>`}
    <span class="field-error" role="alert">${message.text}</span>
    ${open === "move" && html`<${MoveDialog} files=${[file]} close=${() => setOpen("")}
      done=${(/** @type {import("./move-dialog.js").Moved} */ { ids, text }) => ended(ids, text)} />`}
    ${open === "delete" && html`<${Question} title=${t`Delete ${file.name}?`} label=${t`Delete`} confirm=${remove}
      text=${t`Fields that use it become empty. This can't be undone on a branch.`}
      close=${() => setOpen("")} />`}
  </div>`;
}
