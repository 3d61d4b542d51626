/** The input for media: files can be chosen from the library, uploaded, dropped or pasted, and described. */

import { useStudio } from "../context.js";
import { Icon } from "../icons.js";
import { t } from "../language.js";
import { changedText } from "../media/alternative-text.js";
import { MediaDetails } from "../media/details.js";
import { Library } from "../media/library.js";
import { Picture } from "../media/picture.js";
import { describeFile, uploadFiles } from "../media/requests.js";
import { showError, showNotice, useMessage } from "../store/messages.js";
import { html, useRef, useState } from "../vendor/preact.js";
import { isList } from "./shape.js";
import { Sortable } from "./sortable.js";

/** @type {Record<string, string>} */
const ACCEPTED = { images: "image/*", videos: "video/*", audios: "audio/*" };

/** @typedef {import("../media/file.js").Media} Media */

/** @param {import("./field.js").InputProps} props */
export function MediaInput({ id, attribute, value, change, aria }) {
  const { model } = useStudio();
  const many = isList(attribute);
  /** @type {Media[]} */
  const files = many ? (value ?? []) : value ? [value] : [];
  const message = useMessage(id);
  const [over, setOver] = useState(false);
  const [choosing, choose] = useState(false);
  const latest = useRef(files);
  latest.current = files;
  const mayUpload = model.allows("upload", "upload");

  const add = (/** @type {Media[]} */ added) => {
    const fresh = added.filter(({ documentId }) => !latest.current.some((file) => file.documentId === documentId));
    if (fresh.length) change(many ? [...latest.current, ...fresh] : fresh[fresh.length - 1]);
  };
  const upload = async (/** @type {FileList | undefined} */ list) => {
    const chosen = [...(list ?? [])].slice(0, many ? undefined : 1);
    if (!chosen.length || !mayUpload) return;
    showNotice(id, t`Uploading…`);
    try {
      add(await uploadFiles(chosen));
      showNotice(id, t`Uploaded`);
    } catch (error) {
      showError(id, /** @type {Error} */ (error).message);
    }
  };
  const drop = (/** @type {DragEvent} */ event) => {
    setOver(false);
    if (!event.dataTransfer?.files.length) return;
    event.preventDefault();
    upload(event.dataTransfer.files);
  };
  const drag = (/** @type {DragEvent} */ event) => {
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    setOver(true);
  };
  const paste = (/** @type {ClipboardEvent} */ event) => {
    if (!event.clipboardData?.files.length) return;
    event.preventDefault();
    upload(event.clipboardData.files);
  };
  const described = (/** @type {Media} */ file, /** @type {Partial<Media>} */ changes) => {
    const made = { ...file, ...changes };
    change(many ? files.map((one) => (one.documentId === file.documentId ? made : one)) : made);
  };
  const set = (/** @type {Media[]} */ left) => change(many ? left : (left[0] ?? null));
  const card = (/** @type {Media} */ file) => html`<${Card} id=${`${id}-${file.documentId}`} file=${file}
    mayDescribe=${mayUpload} described=${described} />`;
  return html`<div class=${`media ${over ? "is-over" : ""}`} ...${aria} onDrop=${drop} onDragOver=${drag}
    onDragLeave=${() => setOver(false)} onPaste=${paste}>
    <${Sortable} id=${id} items=${files} change=${set}
      keyOf=${(/** @type {Media} */ file) => file.documentId} nameOf=${(/** @type {Media} */ file) => file.__title}>
      ${card}
    <//>
    <div class="adds">
      ${model.allows("upload", "find") && html`<button class="button add" type="button" aria-expanded=${choosing}
        onClick=${() => choose(!choosing)}><${Icon} name="search" /> ${t`Choose`}</button>`}
      ${mayUpload && html`<label class="button add">
        <${Icon} name="up" /> ${t`Upload`}
        <input class="unseen" type="file" multiple=${many} onChange=${(/** @type {Event} */ e) => {
          const input = /** @type {HTMLInputElement} */ (e.target);
          upload(input.files ?? undefined).then(() => (input.value = ""));
        }} accept=${(attribute.allowedTypes ?? []).map((kind) => ACCEPTED[kind]).join(",") || undefined} />
      </label>
      <span class="hint media-hint">${t`or drop or paste it here`}</span>`}
      <span class="hint" role="status">${message.text}</span>
    </div>
    ${choosing && html`<${Library} id=${id} take=${(/** @type {Media} */ file) => {
      add([file]);
      if (!many) choose(false);
    }} />`}
  </div>`;
}

/**
 * A file with its picture, name and descriptions.
 * @param {{id: string, file: Media, mayDescribe: boolean,
 *   described: (file: Media, changes: Partial<Media>) => void}} props
 */
function Card({ id, file, mayDescribe, described }) {
  const [text, setText] = useState(file.__alt);
  const message = useMessage(id);
  const [open, setOpen] = useState(false);
  const detailed = (/** @type {Record<string, any>} */ { name, alternativeText }) => {
    setText(alternativeText ?? "");
    described(file, { __title: name, __alt: alternativeText ?? "" });
    showNotice(id, t`Saved everywhere this file is used`);
  };
  const save = async () => {
    if (text === file.__alt) return;
    try {
      await describeFile(file.__id, { alternativeText: text || null }, { alternativeText: file.__alt });
      described(file, { __alt: text });
      showNotice(id, t`Saved everywhere this file is used`);
    } catch (/** @type {any} */ error) {
      if (error.status !== 412) return showError(id, error.message);
      const current = error.details.current.alternativeText ?? "";
      described(file, { __alt: current });
      showError(id, changedText(current));
    }
  };
  return html`<div class="media-card">
    <${Picture} file=${file} />
    <div class="media-words">
      <span class="media-name">${file.__title}</span>
      ${mayDescribe
        ? html`<label class="hint" for=${`${id}-alt`}>${t`Alternative text`}</label>
            <input class="input" id=${`${id}-alt`} value=${text} onChange=${save}
              onInput=${(/** @type {Event} */ e) => setText(/** @type {HTMLInputElement} */ (e.target).value)} />
            <span class="media-more">
              <button class="button quiet" type="button" aria-label=${t`Details of ${file.__title}`}
                onClick=${() => setOpen(true)}>${t`Details`}</button>
              <span class="hint" role="status">${message.text}</span>
            </span>
            ${open && html`<${MediaDetails} id=${`${id}-details`} file=${file} saved=${detailed}
              close=${() => setOpen(false)} />`}`
        : html`<span class="hint">${file.__alt}</span>`}
    </div>
  </div>`;
}
