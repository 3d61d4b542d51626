/**
 * The previewed page in a frame. The frame is as wide as a phone, tablet or desktop, and scaled to fit into the panel.
 */

import { Icon } from "../icons.js";
import { t } from "../language.js";
import { inSentence } from "../text.js";
import { html, useEffect, useLayoutEffect, useRef, useState } from "../vendor/preact.js";
import { changesBetween } from "./changes.js";
import { useConnection } from "./connection.js";

/** The most common widths of such devices, in CSS pixels. @type {Record<string, number>} */
const DEVICES = { Phone: 390, Tablet: 820, Desktop: 1280 };
/** @type {Record<string, string>} */
const LABELS = { Phone: t`Phone`, Tablet: t`Tablet`, Desktop: t`Desktop` };
const USUAL = "Desktop";
const KEY = "bifolio.preview.device";
const TYPING_MS = 150; // until what is typed is sent
const ANSWER_MS = 4000; // after which a page that has loaded is taken for one that does not answer
const SILENT = t`This page has no live preview, so it reloads after each save. If it stays empty, the site may not be
  running or may not allow framing.`;
const SANDBOX = "allow-scripts allow-forms allow-modals allow-popups allow-popups-to-escape-sandbox";

/**
 * @param {{subject: import("../documents/form.js").Subject, editing: any, address: import("./address.js").Address,
 *   typing: boolean, statuses: any, open: (source: unknown) => void, note: string}} props  `typing` is whether the page
 *   shows the edited values.
 */
export function Framed({ subject, editing, address, typing, statuses, open, note }) {
  const frame = useRef(/** @type {HTMLIFrameElement | null} */ (null));
  const [device, setDevice] = useState(chosenDevice);
  const [answers, setAnswers] = useState(/** @type {"" | "yes" | "no"} */ (""));
  const { values, base, version } = editing.state;
  const sent = useRef(base);
  const tell = (/** @type {any} */ known) => {
    sent.current = values;
    for (const change of typing ? changesBetween(subject.model, subject.type.attributes, known, values) : []) {
      send("strapiFieldChange", { ...change, documentId: subject.id });
    }
  };
  const ready = () => {
    setAnswers("yes");
    tell(base); // What was typed before, and is not saved.
  };
  const send = useConnection(frame, address.origin, { ready, wanted: open });
  const reload = () => {
    setAnswers("");
    if (frame.current) frame.current.src = address.url;
  };

  useEffect(() => {
    if (answers !== "yes") return;
    const timer = setTimeout(() => tell(sent.current), TYPING_MS);
    return () => clearTimeout(timer);
  }, [values, answers]);

  const saved = `${version?.etag} ${version?.published?.updatedAt}`;
  const shown = useRef(saved);
  useEffect(() => {
    if (shown.current === saved) return;
    shown.current = saved;
    sent.current = values;
    if (answers === "yes") send("strapiUpdate", undefined);
    else reload();
  }, [saved]);

  useEffect(() => {
    if (answers !== "yes") return;
    const look = (/** @type {FocusEvent} */ { target }) => {
      const found = /** @type {HTMLElement | null} */ (/** @type {Element} */ (target).closest(".fields [data-field]"));
      if (found) send("strapiFieldFocus", { field: found.dataset.field, documentId: subject.id });
    };
    document.addEventListener("focusin", look);
    return () => document.removeEventListener("focusin", look);
  }, [send, answers]);

  const loaded = () => setTimeout(() => setAnswers((now) => now || "no"), ANSWER_MS);
  const choose = (/** @type {string} */ name) => {
    keepDevice(name);
    setDevice(name);
  };
  return html`<div class="preview">
    <div class="preview-tools">
      <${Devices} device=${device} choose=${choose} />
      ${statuses}
      <span class="preview-links">
        <button class="icon-button" type="button" aria-label=${t`Reload the preview`} title=${t`Reload`}
          onClick=${reload}>
          <${Icon} name="reload" />
        </button>
        <a class="icon-button" href=${address.url} target="_blank" rel="noopener noreferrer"
          aria-label=${t`Open the preview in a new tab`} title=${t`Open in a new tab`}><${Icon} name="out" /></a>
      </span>
    </div>
    <${Stage} width=${DEVICES[device]}>
      <iframe class="preview-frame" ref=${frame} title=${t`Preview, ${inSentence(LABELS[device])}`} src=${address.url}
        sandbox=${address.origin === "null" ? SANDBOX : `${SANDBOX} allow-same-origin`} allow="autoplay; fullscreen"
        referrerpolicy="no-referrer" onLoad=${loaded} />
    <//>
    <p class="preview-note" role="status">${note || noteOf(answers)}</p>
  </div>`;
}

/** @param {"" | "yes" | "no"} answers */
function noteOf(answers) {
  if (answers === "yes") return t`Double-click text to edit it`;
  if (!answers) return t`Loading…`;
  return SILENT;
}

/** @param {{device: string, choose: (name: string) => void}} props */
function Devices({ device, choose }) {
  return html`<div class="preview-choice" role="group" aria-label=${t`Width`}>
    ${Object.keys(DEVICES).map((name) => html`<button class="preview-option" type="button" key=${name}
      aria-pressed=${name === device} title=${t`${DEVICES[name]} pixels`} onClick=${() => choose(name)}>
      ${LABELS[name]}</button>`)}
  </div>`;
}

/**
 * A container for a frame with a certain width. The frame is scaled down if the container is narrower.
 * @param {{width: number, children?: any}} props
 */
function Stage({ width, children }) {
  const stage = useRef(/** @type {HTMLElement | null} */ (null));
  const [room, setRoom] = useState({ width: 0, height: 0 });
  useLayoutEffect(() => {
    const element = stage.current;
    if (!element) return;
    const measure = () => setRoom({ width: element.clientWidth, height: element.clientHeight });
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    measure();
    return () => observer.disconnect();
  }, []);
  const scale = Math.min(1, room.width / width) || 1;
  const style = { width: `${width}px`, height: `${room.height / scale}px`, transform: `scale(${scale})` };
  const around = { width: `${width * scale}px` };
  return html`<div class="preview-stage" ref=${stage}>
    <div class="preview-screen" style=${around}><div class="preview-scaled" style=${style}>${children}</div></div>
  </div>`;
}

/** Return the device that was last chosen in this browser. */
function chosenDevice() {
  try {
    const kept = localStorage.getItem(KEY) ?? "";
    return Object.hasOwn(DEVICES, kept) ? kept : USUAL;
  } catch {
    return USUAL;
  }
}

/** @param {string} name */
function keepDevice(name) {
  try {
    localStorage.setItem(KEY, name);
  } catch {
    // If the browser can't store the choice, it is valid until the panel is closed.
  }
}
