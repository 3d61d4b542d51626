/** The dialog that moves files to another folder. A single file can also be renamed. */

import { Dialog } from "../dialog.js";
import { plural, t } from "../language.js";
import { clearMessage, showError, useMessage } from "../store/messages.js";
import { reloadContent, useRequest } from "../store/requests.js";
import { filesText } from "../text.js";
import { html, useState } from "../vendor/preact.js";
import { fileNameOf, folderOf } from "./file.js";
import { moveFile, readFolders } from "./requests.js";

const DIALOG = "move-files"; // the place of messages

/**
 * @typedef {{ids: string[], text: string}} Moved  The ids with which the moves can be undone, and what was done.
 */

/**
 * @param {{files: any[], close: () => void, done: (moved: Moved) => void, before?: () => Promise<any>}} props  The
 *   files, as returned by the API. The files are only moved if `before` resolves to a true value.
 */
export function MoveDialog({ files, close, done, before }) {
  const isSingle = files.length === 1;
  const [folder, setFolder] = useState(folderOf(files[0]));
  const [name, setName] = useState(fileNameOf(files[0]));
  const [busy, setBusy] = useState(false);
  const { value: folders = [] } = useRequest("folders", readFolders, { isContent: true, isKept: true });
  const message = useMessage(DIALOG);
  /** @param {Event} event */
  const send = async (event) => {
    event.preventDefault();
    if (busy) return;
    setBusy(true);
    clearMessage(DIALOG);
    if (before && !(await before())) return close();
    /** @type {string[]} */
    const ids = [];
    let [count, links] = [0, 0];
    try {
      for (const file of files) {
        const moved = await moveFile(file, isSingle ? { folder, fileName: name } : { folder });
        ids.push(...moved.undo);
        links += moved.links;
        count += 1;
      }
      done({ ids, text: textOf(count, links) });
    } catch (/** @type {any} */ error) {
      setBusy(false);
      reloadContent();
      const before = count ? ` ${t`${filesText(count)} moved before.`}` : "";
      showError(DIALOG, `${files[count].name}: ${error.message}.${before}`);
    }
  };
  const title = isSingle ? t`Move or rename` : t`Move ${filesText(files.length)}`;
  return html`<${Dialog} label=${title} close=${close}>
    <form class="stack" onSubmit=${send}>
      <h2 class="dialog-title">${title}</h2>
      <p class="field">
        <label class="field-label" for="move-folder">${t`Folder`}</label>
        <input class="input" id="move-folder" list="move-folders" value=${folder} autocomplete="off" autofocus
          aria-describedby="move-hint" placeholder=${t`Top folder`}
          onInput=${(/** @type {any} */ event) => setFolder(event.currentTarget.value)} />
        <datalist id="move-folders">
          ${folders.map(({ path }) => path && html`<option key=${path} value=${path} />`)}
        </datalist>
        <span class="hint">${t`A new folder is created if necessary, for example ships/2024.`}</span>
      </p>
      ${isSingle && html`<p class="field">
        <label class="field-label" for="move-name">${t`File name`}</label>
        <input class="input" id="move-name" value=${name} autocomplete="off" required
          onInput=${(/** @type {any} */ event) => setName(event.currentTarget.value)} />
      </p>`}
      <p class="hint" id="move-hint">
        ${t`This changes the address. Documents that use the file are updated, but not links in
        texts, nor links on other websites.`}</p>
      <p class="field-error" role="alert">${message.text}</p>
      <div class="dialog-actions">
        <button class="button" type="button" onClick=${close}>${t`Cancel`}</button>
        <button class="button primary" type="submit" aria-disabled=${busy ? "true" : undefined}>${t`Move`}</button>
      </div>
    </form>
  <//>`;
}

/** @param {number} count @param {number} links */
function textOf(count, links) {
  const moved = t`${filesText(count)} moved`;
  return links ? `${moved}. ${leftText(links)}` : moved;
}

/** @param {number} links */
function leftText(links) {
  return plural(links, {
    one: "{0} link in a text still leads to the old address",
    other: "{0} links in texts still lead to the old address",
  });
}
