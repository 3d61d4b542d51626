/** The dialog with a file's details, the documents that use it, and the actions on it. */

import { useStudio } from "../context.js";
import { Dialog } from "../dialog.js";
import { t } from "../language.js";
import { Failure } from "../states.js";
import { offerUndo, showError, useMessage } from "../store/messages.js";
import { reloadContent, useRequest } from "../store/requests.js";
import { html, useState } from "../vendor/preact.js";
import { Facts, Usage } from "./about.js";
import { DeleteQuestion, usageOf } from "./delete-question.js";
import { MediaDetails } from "./details.js";
import { fileOf } from "./file.js";
import { MoveDialog } from "./move-dialog.js";
import { readFile, removeFile, replaceFile } from "./requests.js";

const PLACE = "media-action"; // of messages

/** @typedef {import("./details.js").Save} Save */

/** @param {{id: string, close: () => void}} props */
export function FilePanel({ id, close }) {
  const { model } = useStudio();
  const { value: file, error, retry } = useRequest(`media ${id}`, () => readFile(id), { isContent: true });
  if (error) {
    return html`<${Dialog} label=${t`Details`} close=${close}><${Failure} error=${error} again=${retry} />
      <p class="dialog-actions"><button class="button" type="button" onClick=${close}>${t`Close`}</button></p><//>`;
  }
  if (!file) return "";
  const about = (/** @type {Save} */ save) => html`<${Facts} file=${file} /><${Usage} file=${file} />
    <${Actions} ...${{ file, close, save }} />`;
  return html`<${MediaDetails} id="media-details" file=${fileOf(file)} close=${close} saved=${() => {}}
    mayDescribe=${model.allows("upload", "upload")} about=${about} />`;
}

/** @param {{file: any, close: () => void, save: Save}} props */
function Actions({ file, close, save }) {
  const { model } = useStudio();
  const message = useMessage(PLACE);
  const [open, setOpen] = useState(/** @type {"" | "move" | "delete"} */ (""));
  const [used, setUsed] = useState(/** @type {import("./delete-question.js").Used | null} */ (null));
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
  const askOrRemove = async () => {
    try {
      const found = await usageOf([file]);
      if (model.isServed && !found) return remove();
      setUsed(found);
      setOpen("delete");
    } catch (/** @type {any} */ error) {
      showError(PLACE, error.message);
    }
  };
  /** @param {any} event */
  const replace = async ({ target }) => {
    const [chosen] = target.files;
    target.value = "";
    const info = chosen && (await save());
    if (info) run(() => replaceFile({ ...file, ...info }, chosen), t`The content of ${info.name} was replaced`);
  };
  return html`<div class="media-actions">
    ${mayUpload && html`<label class="button media-choose">${t`Replace`}
      <input class="unseen" type="file" accept=${file.mime} onChange=${replace} /></label>`}
    ${mayUpload && mayDelete && model.isServed && html`<button class="button" type="button"
      onClick=${() => setOpen("move")}>${t`Move or rename`}</button>`}
    ${mayDelete && html`<button class="button" type="button"
      onClick=${askOrRemove}>${t`Delete`}</button>`}
    ${mayDelete && !model.isServed && html`<span class="hint">${t`Files can be moved only on the live site.`}</span>`}
    <span class="field-error" role="alert">${message.text}</span>
    ${open === "move" && html`<${MoveDialog} files=${[file]} close=${() => setOpen("")} before=${save}
      done=${(/** @type {import("./move-dialog.js").Moved} */ { ids, text }) => ended(ids, text)} />`}
    ${open === "delete" && html`<${DeleteQuestion} subject=${file.name} confirm=${remove}
      ...${{ used, isServed: model.isServed }} close=${() => setOpen("")} />`}
  </div>`;
}
