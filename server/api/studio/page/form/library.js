/** The files of the site, to choose from, and the pictures that they are shown by. */

import { html, useEffect, useState } from "../vendor/preact.js";
import { findFiles, sourceOf } from "./files.js";

const REST_MS = 150; // files are asked for once typing rests for as long

/**
 * @typedef {{documentId: string, __id: number, __title: string, __alt: string, __preview: string}} Media
 */

/** @param {{file: Media}} props */
export function Picture({ file }) {
  const ending = file.__title.split(".").pop();
  if (!file.__preview) return html`<span class="media-picture" aria-hidden="true">${ending}</span>`;
  return html`<img class="media-picture" src=${sourceOf(file.__preview)} alt="" loading="lazy" />`;
}

/**
 * The files of the site, to choose from.
 * @param {{id: string, take: (file: Media) => void, pictures?: boolean}} props  `pictures`: no other files.
 */
export function Library({ id, take, pictures = false }) {
  const [text, setText] = useState("");
  const [{ found, error }, set] = useState({ found: /** @type {Media[]} */ ([]), error: "" });
  useEffect(() => {
    const controller = new AbortController();
    const look = () =>
      findFiles(text, pictures, controller.signal).then(
        (files) => set({ found: files, error: "" }),
        (failed) => failed.name !== "AbortError" && set({ found: [], error: failed.message }),
      );
    const timer = setTimeout(look, text ? REST_MS : 0);
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [text]);
  return html`<div class="library" role="group" aria-label="Files to choose from">
    <label class="unseen" for=${`${id}-find`}>Find files</label>
    <input class="input" id=${`${id}-find`} type="search" placeholder="Find files" value=${text}
      onInput=${(/** @type {Event} */ e) => setText(/** @type {HTMLInputElement} */ (e.target).value)} />
    <p class="field-error" role="alert">${error}</p>
    <ul class="library-files">
      ${found.map((file) => html`<li key=${file.documentId}>
        <button class="library-file" type="button" onClick=${() => take(file)}>
          <${Picture} file=${file} /><span class="media-name">${file.__title}</span>
        </button>
      </li>`)}
    </ul>
  </div>`;
}
