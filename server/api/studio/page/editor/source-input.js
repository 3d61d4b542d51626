/** The input of source text: a text area, until the editor of its language is there; it stays where none comes. */

import { NotLoaded, loadPart } from "../connection/parts.js";
import { html, useEffect, useLayoutEffect, useRef, useState } from "../vendor/preact.js";
import { applyChanges, asEdited, difference } from "./line-ends.js";

/**
 * @callback Edit  What is to be done to a text whose part from one place to another is selected.
 * @param {string} text
 * @param {number} from
 * @param {number} to
 * @returns {{changes: import("./line-ends.js").Change[], from: number, to: number}} And what is selected then.
 */

/** @typedef {{key: string, edit: Edit}} Key  Such as "Mod-b": with Control, or Command. */

/**
 * @typedef {object} Props
 * @property {string} id
 * @property {string} text
 * @property {(text: string) => void} change
 * @property {Record<string, string>} aria
 * @property {"markdown" | "json"} language
 * @property {Key[]} [keys]
 * @property {{current: any}} [view]  Is given the `SourceView` while there is one.
 * @property {(files: File[], place: import("./places.js").Place) => void} [files]  Called with files that are dropped
 *   or pasted, and with the place where they go.
 * @property {() => void} [ready]  Called when there is one.
 */

const NEAR = "400px"; // how far below what is seen an editor is made already

/** @param {Props} props */
export function SourceInput({ id, text, change, aria, language, keys = [], view, files, ready }) {
  const host = useRef(/** @type {HTMLElement | null} */ (null));
  const parent = useRef(/** @type {HTMLElement | null} */ (null));
  const own = useRef(/** @type {import("./source-view.js").SourceView | null} */ (null));
  const latest = useRef({ change, files });
  latest.current = { change, files };
  const [made, failed] = useLoading(host);
  const spellcheck = language === "markdown";
  const attributes = { id, "aria-labelledby": `${id}-label`, spellcheck: String(spellcheck), ...aria };

  useLayoutEffect(() => {
    if (!made || !parent.current) return;
    const shown = (own.current = made.make({
      parent: parent.current,
      text,
      language,
      readOnly: Boolean(parent.current.closest("fieldset:disabled")),
      attributes,
      keys,
      change: (/** @type {string} */ one) => latest.current.change(one),
      files: files && ((given, place) => latest.current.files?.(given, place)),
    }));
    if (view) view.current = shown;
    if (made.selected) shown.focus(...made.selected);
    ready?.();
    const label = document.getElementById(`${id}-label`);
    const focus = () => shown.focus();
    label?.addEventListener("click", focus);
    return () => {
      label?.removeEventListener("click", focus);
      shown.remove();
    };
  }, [made]);
  useLayoutEffect(() => own.current?.show(text), [text]);
  useLayoutEffect(() => own.current?.describe(attributes), [JSON.stringify(aria)]);

  return html`<div class="source" ref=${host}>
    ${made
      ? html`<div class="source-view" ref=${parent} key="view" />`
      : html`<textarea class="input lines is-code" key="area" id=${id} value=${text} spellcheck=${spellcheck}
          rows=${rowsOf(text)} onInput=${(/** @type {Event} */ event) => change(typedInto(text, event))} ...${aria} />`}
    ${failed && html`<${NotLoaded} what="The editor" />`}
  </div>`;
}

/**
 * How high a text area is in browsers that do not size it by what is in it (`field-sizing`).
 * @param {string} text
 */
export const rowsOf = (text) => Math.min(20, Math.max(3, text.split("\n", 20).length));

/**
 * A text after something was typed into its text area.
 * @param {string} text
 * @param {Event} event
 */
export function typedInto(text, event) {
  const { value } = /** @type {HTMLTextAreaElement} */ (event.target);
  const made = difference(asEdited(text), value);
  return made ? applyChanges(text, [made]) : text;
}

/**
 * @typedef {object} Made
 * @property {typeof import("./source-view.js").makeSourceView} make
 * @property {[number, number] | null} selected  What was selected in the text area, null where it has no focus.
 */

/**
 * What makes the editor, once its place is near what is seen and its modules are there; null until then. And whether
 * they can't be had.
 * @param {{current: HTMLElement | null}} host
 * @returns {[Made | null, boolean]}
 */
function useLoading(host) {
  const [made, set] = useState(/** @type {Made | null} */ (null));
  const [failed, fail] = useState(false);
  useEffect(() => {
    const area = host.current?.querySelector("textarea");
    if (!area) return;
    let wanted = true;
    let composing = false;
    area.addEventListener("compositionstart", () => (composing = true));
    area.addEventListener("compositionend", () => (composing = false));
    const load = async () => {
      const { makeSourceView: make } = await loadPart("editor/source-view.js");
      // A character that is only half composed would be lost.
      if (composing) await new Promise((done) => area.addEventListener("compositionend", done, { once: true }));
      const focused = document.activeElement === area;
      if (wanted) set({ make, selected: focused ? [area.selectionStart, area.selectionEnd] : null });
    };
    const observer = new IntersectionObserver(
      (entries) => {
        if (!entries.some(({ isIntersecting }) => isIntersecting)) return;
        observer.disconnect();
        load().catch(() => fail(true)); // The text area stays.
      },
      { rootMargin: NEAR },
    );
    observer.observe(area);
    return () => {
      wanted = false;
      observer.disconnect();
    };
  }, []);
  return [made, failed];
}
