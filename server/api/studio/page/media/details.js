/**
 * The dialog for a file's name and descriptions. For a picture, it also sets the focal point, which stays visible when
 * the picture is cropped, and shows the picture cropped to common ratios.
 */

import { Dialog, Question } from "../dialog.js";
import { useGuard } from "../form/page.js";
import { plural, t } from "../language.js";
import { pictureIn, showSmaller } from "../pictures.js";
import { clearMessage, showError, useMessage } from "../store/messages.js";
import { reloadContent, useRequest } from "../store/requests.js";
import { html, useRef, useState } from "../vendor/preact.js";
import { describeFile, readFile } from "./requests.js";

/** @type {[string, string][]} */
const TEXTS = [["name", t`Name`], ["alternativeText", t`Alternative text`], ["caption", t`Caption`]];
/** @type {Record<string, string>} */
const LABELS = { ...Object.fromEntries(TEXTS), focalPoint: t`Focal point` };
const MIDDLE = { x: 50, y: 50 };
const RATIOS = [[16, 9], [4, 3], [1, 1], [3, 4]]; // of the crops
const CROP_HEIGHT = 72; // in pixels
/** @type {import("../pictures.js").Place} */
const PLACE = { width: 440, height: 600, fit: "inside" }; // as wide as the dialog

/**
 * @typedef {() => Promise<Record<string, any> | null>} Save  A function that saves what was typed, and returns
 *   the file. If that fails, it shows the reason, and returns null.
 */

/** @typedef {{x: number, y: number}} Point  A point in percent of a picture's width and height. */

/**
 * @param {{id: string, file: import("./file.js").Media, close: () => void,
 *   saved: (info: Record<string, any>) => void, mayDescribe?: boolean, about?: (save: Save) => any}} props
 *   `about` returns what is shown below the descriptions.
 */
export function MediaDetails({ id, file, close, saved, mayDescribe = true, about = () => null }) {
  const { value: described, error, reload } = useRequest(`file ${file.__id}`, () => readFile(file.__id));
  const [changes, change] = useState(/** @type {Record<string, any>} */ ({}));
  const message = useMessage(id);
  const info = { ...described, ...changes };
  const set = (/** @type {string} */ name, /** @type {any} */ value) => change({ ...changes, [name]: value });
  const seen = (/** @type {[string, any][]} */ changed) => {
    return Object.fromEntries(changed.map(([name]) => [name, described[name] ?? null]));
  };
  const changed = Object.entries(changes).filter(([name, value]) => !same(described?.[name], value));
  const [leave, stay] = useGuard(changed.length > 0);
  const [isClosing, setClosing] = useState(false);
  const cancel = () => (changed.length ? setClosing(true) : close());
  const save = async () => {
    clearMessage(id);
    if (info.name === "") {
      showError(id, `${t`Name`}: ${t`is required`}`);
      return null;
    }
    try {
      if (changed.length) await describeFile(file.__id, Object.fromEntries(changed), seen(changed));
      await reload();
      return info;
    } catch (/** @type {any} */ refused) {
      if (refused.status === 412) await reload(); // Saving again replaces the other values.
      showError(id, refused.status === 412
        ? t`Somebody else has changed this file. Save again to replace their changes.` : refused.message);
      return null;
    }
  };
  const send = async () => {
    if (!(await save())) return;
    saved(info);
    close();
    if (changed.length) reloadContent();
  };
  if (!mayDescribe) {
    return html`<${Dialog} label=${t`Details of ${file.__title}`} close=${close}>
      ${described && file.__preview && html`<img class="focal-picture" ...${shownOf(described)} alt="" />`}
      ${described && html`<h2 class="dialog-title">${file.__title}</h2>
        ${described.alternativeText && html`<p>${described.alternativeText}</p>`}
        ${described.caption && html`<p class="hint">${described.caption}</p>`}`}
      ${described && about(save)}
      <p class="field-error" role="alert">${error?.message}</p>
      <p class="dialog-actions"><button class="button" type="button" onClick=${close}>${t`Close`}</button></p>
    <//>`;
  }
  return html`<${Dialog} label=${t`Details of ${file.__title}`} close=${cancel}>
    ${described && file.__preview && html`<${Focal} picture=${described} shown=${shownOf(described)}
      point=${info.focalPoint} set=${(/** @type {Point | null} */ point) => set("focalPoint", point)} />`}
    ${described?.width && file.__preview && html`<${Crops} picture=${described} shown=${shownOf(described)}
      point=${info.focalPoint} />`}
    ${described && TEXTS.map(([name, label]) => html`<div class="field" key=${name}>
      <label class="field-label" for=${`${id}-${name}`}>${label}</label>
      <input class="input" id=${`${id}-${name}`} value=${info[name] ?? ""}
        onInput=${(/** @type {any} */ e) => set(name, e.target.value || (name === "name" ? "" : null))} />
    </div>`)}
    ${described && about(save)}
    <p class="field-error" role="alert">${message.text || error?.message}</p>
    <p class="dialog-actions">
      <button class="button primary" type="button" disabled=${!described || info.name === ""}
        onClick=${send}>${t`Save`}</button>
      <button class="button quiet" type="button" onClick=${cancel}>${t`Cancel`}</button>
    </p>
    ${(isClosing || leave) && html`<${Question} danger label=${t`Discard`} confirm=${leave ?? close}
      title=${t`Discard ${plural(changed.length, { one: "{0} unsaved change", other: "{0} unsaved changes" })}?`}
      text=${changed.map(([name]) => LABELS[name]).join(", ")} close=${leave ? stay : () => setClosing(false)} />`}
  <//>`;
}

/** Return the attributes of the picture, which are the same for the crops. @param {Record<string, any>} file */
const shownOf = (file) => {
  return pictureIn(/** @type {{url: string}} */ (file), PLACE, file.formats?.large?.url ?? file.url);
};

/**
 * A picture with its focal point. A click sets the point; the arrow keys move it, with Shift by larger steps.
 * @param {{picture: Record<string, any>, shown: ReturnType<typeof pictureIn>, point: Point | null | undefined,
 *   set: (point: Point | null) => void}} props
 */
function Focal({ picture: { width, height }, shown, point, set }) {
  const ratio = width && height ? width / height : 0;
  const style = ratio ? { width: `min(100%, ${45 * ratio}vh, ${width}px)`, aspectRatio: ratio } : {};
  const picture = useRef(/** @type {HTMLElement | null} */ (null));
  const { x, y } = point ?? MIDDLE;
  const click = (/** @type {MouseEvent} */ event) => {
    const box = picture.current?.getBoundingClientRect();
    if (!box || event.detail === 0) return; // Enter on the point is no click at a place
    set({
      x: percent(((event.clientX - box.left) / box.width) * 100),
      y: percent(((event.clientY - box.top) / box.height) * 100),
    });
  };
  const press = (/** @type {KeyboardEvent} */ event) => {
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (!step) return;
    event.preventDefault();
    const far = event.shiftKey ? 10 : 1;
    set({ x: percent(Number(x) + step[0] * far), y: percent(Number(y) + step[1] * far) });
  };
  return html`<div class="focal" onClick=${click}>
      <div class="focal-picture" ref=${picture} style=${style}>
        <img ...${shown} style=${ratio ? { width: "100%" } : {}} alt="" draggable="false" onError=${showSmaller} />
        <button class=${`focal-point ${point ? "" : "is-unset"}`} type="button" onKeyDown=${press}
          aria-label=${t`Focal point, ${x} % from the left, ${y} % from the top. The arrow keys move it.`}
          style=${{ left: `${x}%`, top: `${y}%` }}></button>
      </div>
    </div>
    <p class="hint focal-hint">
      ${point ? t`The focal point is at ${x} %, ${y} %.` : t`Click the most important point to set the focal point.`}
      ${point && html`<button class="button quiet" type="button" onClick=${() => set(null)}>
        ${t`No focal point`}</button>`}
    </p>`;
}

/**
 * The picture as it is cropped to common ratios. The server crops it in the same way (docs/images.md).
 * @param {{picture: Record<string, any>, shown: ReturnType<typeof pictureIn>,
 *   point: Point | null | undefined}} props
 */
function Crops({ picture, shown, point }) {
  const { x, y } = point ?? MIDDLE;
  const crops = RATIOS.map(([across, down]) => {
    const [width, height] = [CROP_HEIGHT * across / down, CROP_HEIGHT];
    const scale = Math.max(width / picture.width, height / picture.height);
    const [wide, high] = [picture.width * scale, picture.height * scale];
    const left = between(wide * Number(x) / 100 - width / 2, wide - width);
    const top = between(high * Number(y) / 100 - height / 2, high - height);
    return html`<figure class="crop" key=${`${across}:${down}`}>
      <div class="crop-picture" style=${{ width: `${width}px`, height: `${height}px` }}>
        <img ...${shown} alt="" onError=${showSmaller} style=${{
          width: `${wide}px`, height: `${high}px`, transform: `translate(${-left}px, ${-top}px)`,
        }} />
      </div>
      <figcaption>${across}:${down}</figcaption>
    </figure>`;
  });
  return html`<div class="crops" role="group" aria-label=${t`Crops around the focal point`}>${crops}</div>`;
}

/** @param {any} a @param {any} b */
const same = (a, b) => JSON.stringify(a ?? "") === JSON.stringify(b ?? "");

/** @param {number} value @param {number} most */
const between = (value, most) => Math.max(0, Math.min(value, most));

/** @param {number} value */
const percent = (value) => Math.round(Math.max(0, Math.min(100, value)));
