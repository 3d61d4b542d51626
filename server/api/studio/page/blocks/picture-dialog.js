/** The dialog for choosing a picture from the site. */

import { Dialog } from "../dialog.js";
import { t } from "../language.js";
import { readFile } from "../media/requests.js";
import { Library } from "../media/library.js";
import { showError, useMessage } from "../store/messages.js";
import { html } from "../vendor/preact.js";

const PLACE = "picture-dialog"; // of messages
/** The properties of a file that an image in `blocks` contains. */
const MEMBERS = [
  "name", "alternativeText", "url", "caption", "width", "height", "formats", "hash", "ext", "mime", "size",
  "previewUrl", "provider", "createdAt", "updatedAt",
];

/** @param {{id: string, close: () => void, take: (image: object) => void}} props */
export function PictureDialog({ id, close, take }) {
  const message = useMessage(PLACE);
  const choose = async (/** @type {import("../media/file.js").Media} */ { __id: file }) => {
    try {
      const found = await readFile(file);
      take(Object.fromEntries(MEMBERS.filter((name) => name in found).map((name) => [name, found[name]])));
      close();
    } catch (error) {
      showError(PLACE, /** @type {Error} */ (error).message);
    }
  };
  return html`<${Dialog} label=${t`Choose a picture`} close=${close} class="blocks-dialog is-wide"><div class="stack">
    <${Library} id=${`${id}-picture`} take=${choose} pictures />
    <p class="field-error" role="alert">${message.text}</p>
    <p class="dialog-actions"><button class="button quiet" type="button" onClick=${close}>${t`Cancel`}</button></p>
  </div><//>`;
}
