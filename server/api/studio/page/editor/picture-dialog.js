/** The dialog for choosing a picture from the site. */

import { Dialog } from "../dialog.js";
import { t } from "../language.js";
import { readFile } from "../media/requests.js";
import { Library } from "../media/library.js";
import { showError, useMessage } from "../store/messages.js";
import { html } from "../vendor/preact.js";

const PLACE = "picture-dialog"; // of messages

/**
 * @typedef {{url: string, name: string, alternativeText: string | null, mime: string}} File  A file, as returned by the
 *   API.
 */

/** @param {{id: string, close: () => void, take: (file: File) => void}} props */
export function PictureDialog({ id, close, take }) {
  const message = useMessage(PLACE);
  const choose = (/** @type {import("../media/file.js").Media} */ { __id: file }) => {
    return readFile(file).then(take, (error) => showError(PLACE, error.message));
  };
  return html`<${Dialog} label=${t`Choose a picture`} close=${close} class="picture-dialog"><div class="stack">
    <${Library} id=${`${id}-picture`} take=${choose} pictures />
    <p class="field-error" role="alert">${message.text}</p>
    <p class="dialog-actions"><button class="button quiet" type="button" onClick=${close}>${t`Cancel`}</button></p>
  </div><//>`;
}
