/** The place for dropping files into the media library, with the progress of uploads. */

import { useReachable } from "../connection/connection.js";
import { Icon } from "../icons.js";
import { t } from "../language.js";
import { counted, filesText } from "../text.js";
import { html, useState } from "../vendor/preact.js";
import { addUploads, dismissUploads, retryUploads, useUploads } from "./upload-queue.js";

/** @param {{folder: string}} props  The folder into which files are uploaded. */
export function Uploads({ folder }) {
  const [over, setOver] = useState(false);
  const add = (/** @type {FileList | undefined | null} */ list) => addUploads([...(list ?? [])], folder);
  /** @param {DragEvent} event */
  const drop = (event) => {
    setOver(false);
    if (!event.dataTransfer?.files.length) return;
    event.preventDefault();
    add(event.dataTransfer.files);
  };
  /** @param {DragEvent} event */
  const drag = (event) => {
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    setOver(true);
  };
  /** @param {ClipboardEvent} event */
  const paste = (event) => {
    if (!event.clipboardData?.files.length) return;
    event.preventDefault();
    add(event.clipboardData.files);
  };
  return html`<div class=${`media-drop ${over ? "is-over" : ""}`} role="region" aria-label=${t`Upload`} onDrop=${drop}
    onDragOver=${drag} onDragLeave=${() => setOver(false)} onPaste=${paste}>
    <label class="button media-choose"><${Icon} name="up" /> ${t`Upload files`}
      <input class="unseen" type="file" multiple onChange=${(/** @type {any} */ { target }) => {
        add(target.files);
        target.value = "";
      }} /></label>
    <span class="hint">
      ${folder ? t`or drop them here, to store them in the folder ${folder}.`
        : t`or drop them here, to store them in the top folder.`}</span>
    <${Progress} />
  </div>`;
}

/** How many of the files have been uploaded, and which could not be. */
function Progress() {
  const uploads = useUploads();
  const reachable = useReachable();
  const done = uploads.filter(({ state }) => state === "done");
  const failed = uploads.filter(({ state }) => state === "failed");
  const isOver = done.length + failed.length === uploads.length;
  const bytes = uploads.reduce((sum, { file }) => sum + file.size, 0);
  const sent = uploads.reduce((sum, upload) => sum + (upload.state === "failed" ? upload.file.size : upload.sent), 0);
  const phase = !uploads.length ? "" : isOver ? doneText(done.length, failed.length)
    : reachable ? t`Uploading…` : t`No connection. The upload continues when the server is back.`;
  return html`
    ${uploads.length > 0 && !isOver && html`<progress class="media-progress" aria-label=${t`Upload`} max=${bytes || 1}
      value=${sent}></progress>
      <span>${t`${counted(done.length)} of ${filesText(uploads.length)} uploaded`}</span>`}
    <span role="status">${phase}</span>
    ${failed.length > 0 && html`<ul class="media-failed" aria-label=${t`Files that were not uploaded`}>
      ${failed.map(({ file, error, documentId }) => html`<li class="field-error" key=${documentId}>
        ${file.name}: ${error}</li>`)}
    </ul>`}
    ${failed.length > 0 && isOver && html`<button class="button" type="button" onClick=${retryUploads}>
      ${t`Try these again`}</button>`}
    ${uploads.length > 0 && isOver && html`<button class="button quiet" type="button" onClick=${dismissUploads}>
      ${t`Dismiss`}</button>`}`;
}

/** @param {number} done @param {number} failed */
function doneText(done, failed) {
  if (!failed) return t`${filesText(done)} uploaded.`;
  return t`${filesText(done)} uploaded, ${filesText(failed)} not uploaded:`;
}

