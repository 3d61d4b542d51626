/** The input for Markdown: a toolbar, the source, and a preview. */

import { useStudio } from "../context.js";
import { t } from "../language.js";
import { readFile, uploadFiles } from "../media/requests.js";
import { clearMessage, messageAt, showError, showNotice, useMessage } from "../store/messages.js";
import { html, useEffect, useLayoutEffect, useRef, useState } from "../vendor/preact.js";
import { TOOLS, fileText, insertion } from "./formatting.js";
import { PictureDialog } from "./picture-dialog.js";
import { Preview } from "./preview.js";
import { SourceInput } from "./source-input.js";
import { Toolbar } from "./toolbar.js";

const UPLOADING = t`Uploading…`;
const KEYS = TOOLS.flatMap(({ key, edit }) => (key ? [{ key: `Mod-${key}`, edit }] : []));

/** @param {import("../form/field.js").InputProps} props */
export function MarkdownInput({ id, label, value, change, aria }) {
  const { model } = useStudio();
  const text = String(value ?? "");
  const view = useRef(/** @type {import("./source-view.js").SourceView | null} */ (null));
  const [ready, setReady] = useState(false);
  const [previewed, setPreviewed] = useState(false);
  const [choosing, choose] = useState(false);
  const [chosen, take] = useState(/** @type {import("./picture-dialog.js").File | null} */ (null));
  const message = useMessage(id);
  const uploads = useRef(0); // that are under way
  const edit = (/** @type {import("./source-input.js").Edit} */ one) => view.current?.edit(one);
  const wrong = aria["aria-invalid"];
  useEffect(() => {
    if (wrong) setPreviewed(false); // What is wrong is in the source.
  }, [wrong]);
  // This runs as soon as no dialog has the focus, so that the next typed text is inserted after the picture.
  useLayoutEffect(() => {
    if (chosen) edit(insertion(fileText(chosen)));
  }, [chosen]);

  const upload = async (
    /** @type {globalThis.File[]} */ files,
    /** @type {import("./places.js").Place} */ place,
  ) => {
    uploads.current += 1;
    showNotice(id, UPLOADING);
    try {
      const made = await uploadFiles(files);
      const read = await Promise.all(made.map((/** @type {any} */ one) => readFile(one.__id)));
      place.fill(read.map(fileText).join(""));
      if (messageAt(id).text === UPLOADING && uploads.current === 1) clearMessage(id);
    } catch (error) {
      place.leave();
      showError(id, /** @type {Error} */ (error).message);
    } finally {
      uploads.current -= 1;
    }
  };
  return html`<div class=${`markdown ${previewed ? "is-previewed" : ""}`}>
    <div class="markdown-bar">
      <${Toolbar} id=${id} edit=${ready ? edit : null}
        picture=${model.allows("upload", "find") ? () => choose(true) : undefined} />
      <span class="markdown-told" role="status">${message.text}</span>
      <${Toggle} ...${{ id, label }} pressed=${previewed} press=${() => setPreviewed(!previewed)} />
    </div>
    <div class="markdown-panes">
      <${SourceInput} ...${{ id, text, aria, view }} language="markdown" keys=${KEYS} ready=${() => setReady(true)}
        files=${model.allows("upload", "upload") ? upload : undefined}
        change=${(/** @type {string} */ made) => change(made || null)} />
      ${previewed && html`<${Preview} ...${{ id, label, text }} />`}
    </div>
    ${choosing && html`<${PictureDialog} id=${id} close=${() => choose(false)}
      take=${(/** @type {import("./picture-dialog.js").File} */ file) => (choose(false), take(file))} />`}
  </div>`;
}

/**
 * The button for the preview. It must also work for users who may not edit, although all buttons in the form are
 * disabled for them. Its label contains the input's label, because a form can have several Markdown inputs, and also a
 * preview of the page.
 * @param {{id: string, label: string, pressed: boolean, press: () => void}} props  The id and label of the input.
 */
function Toggle({ id, label, pressed, press }) {
  const key = (/** @type {KeyboardEvent} */ event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    press();
  };
  return html`<span class="markdown-toggle" role="button" tabindex="0" aria-pressed=${pressed} onClick=${press}
    aria-label=${t`Preview of ${label}`} aria-controls=${pressed ? `${id}-preview` : undefined}
    onKeyDown=${key}>${t`Preview`}</span>`;
}
