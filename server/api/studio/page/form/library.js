/** The media library, from which files can be chosen, and the pictures that represent files. */

import { pictureIn, showSmaller } from "../pictures.js";
import { keyOf, useRequest } from "../store/requests.js";
import { html, useState } from "../vendor/preact.js";
import { findFiles } from "./files.js";

/** @type {import("../pictures.js").Place} */
const PLACE = { width: 90, height: 90, fit: "cover" }; // as in form.css
const TYPING_MS = 150; // the pause in typing after which files are searched

/**
 * @typedef {{documentId: string, __id: number, __title: string, __alt: string, __preview: string,
 *   __url: string}} Media
 */

/** @param {{file: Media}} props */
export function Picture({ file }) {
  const ending = file.__title.split(".").pop();
  if (!file.__preview) return html`<span class="media-picture" aria-hidden="true">${ending}</span>`;
  const shown = pictureIn({ url: file.__url }, PLACE, file.__preview);
  return html`<img class="media-picture" ...${shown} alt="" loading="lazy" onError=${showSmaller} />`;
}

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
  return html`<div class="library" role="group" aria-label="Files to choose from">
    <label class="unseen" for=${`${id}-find`}>Find files</label>
    <input class="input" id=${`${id}-find`} type="search" placeholder="Find files" value=${text}
      onInput=${(/** @type {Event} */ e) => setText(/** @type {HTMLInputElement} */ (e.target).value)} />
    <p class="field-error" role="alert">${error?.message}</p>
    <ul class="library-files">
      ${files.map((/** @type {Media} */ file) => html`<li key=${file.documentId}>
        <button class="library-file" type="button" onClick=${() => take(file)}>
          <${Picture} file=${file} /><span class="media-name">${file.__title}</span>
        </button>
      </li>`)}
    </ul>
  </div>`;
}
