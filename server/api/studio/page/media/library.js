/** The latest files of the media library, from which one can be chosen. */

import { t } from "../language.js";
import { keyOf, useRequest } from "../store/requests.js";
import { html, useState } from "../vendor/preact.js";
import { FileGrid } from "./grid.js";
import { Picture } from "./picture.js";
import { findFiles } from "./requests.js";

const TYPING_MS = 150; // the pause in typing after which files are searched

/** @typedef {import("./file.js").Media} Media */

/**
 * The list of files in the media library, for choosing one.
 * @param {{id: string, take: (file: Media) => void, pictures?: boolean}} props  `pictures` limits the list to pictures.
 */
export function Library({ id, take, pictures = false }) {
  const [text, setText] = useState("");
  const load = (/** @type {AbortSignal} */ signal) => findFiles(text, pictures, signal);
  const { value: files = [], error } = useRequest(keyOf("files", pictures, text), load, {
    delayMs: text ? TYPING_MS : 0,
  });
  return html`<div class="library" role="group" aria-label=${t`Files to choose from`}>
    <label class="unseen" for=${`${id}-find`}>${t`Find files`}</label>
    <input class="input" id=${`${id}-find`} type="search" placeholder=${t`Find files`} value=${text}
      onInput=${(/** @type {Event} */ e) => setText(/** @type {HTMLInputElement} */ (e.target).value)} />
    <p class="field-error" role="alert">${error?.message}</p>
    <${FileGrid} class="library-files">
      ${files.map((/** @type {Media} */ file) => html`<li key=${file.documentId}>
        <button class="library-file media-open" type="button" onClick=${() => take(file)}>
          <${Picture} file=${file} /><span class="media-name">${file.__title}</span>
        </button>
      </li>`)}
    <//>
  </div>`;
}
