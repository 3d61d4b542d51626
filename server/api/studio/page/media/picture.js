/** The picture that represents a file. A file that is not a picture is represented by the end of its name. */

import { fileAddress } from "../api.js";
import { pictureIn, showSmaller } from "../pictures.js";
import { html } from "../vendor/preact.js";

/** @type {import("../pictures.js").Place} */
const PLACE = { width: 90, height: 90, fit: "cover" }; // as in form.css

/**
 * `whole` shows all of the picture, in the thumbnail that the server has already, because a page of the library shows
 * many.
 * @param {{file: import("./file.js").Media, whole?: boolean}} props
 */
export function Picture({ file, whole = false }) {
  const ending = file.__title.includes(".") ? file.__title.split(".").pop() : "file";
  const style = `media-picture ${whole ? "is-whole" : ""}`;
  if (!file.__preview) return html`<span class=${style} aria-hidden="true">${ending}</span>`;
  const shown = whole ? { src: fileAddress(file.__preview, file.__version) }
    : pictureIn({ url: file.__url, updatedAt: file.__version }, PLACE, file.__preview);
  return html`<img class=${style} ...${shown} alt="" loading="lazy" decoding="async" onError=${showSmaller} />`;
}
