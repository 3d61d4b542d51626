/**
 * The input for source text: a text area until the editor has been loaded. If it can't be loaded, the text area stays.
 */

import { NotLoaded, loadPart } from "../connection/parts.js";
import { t } from "../language.js";
import { html, useEffect, useLayoutEffect, useRef, useState } from "../vendor/preact.js";
import { applyChanges, asEdited, difference } from "./line-ends.js";

/**
 * @callback Edit  A function that edits a text. The selection is from `from` to `to`.
 * @param {string} text
 * @param {number} from
 * @param {number} to
 * @returns {{changes: import("./line-ends.js").Change[], from: number, to: number}} The changes, and the new selection.
 */

/** @typedef {{key: string, edit: Edit}} Key  A shortcut such as "Mod-b", where Mod is Control or Command. */

/**
 * @typedef {object} Props
 * @property {string} id
 * @property {string} text
 * @property {(text: string) => void} change
 * @property {Record<string, string>} aria
 * @property {"markdown" | "json"} language
 * @property {Key[]} [keys]
 * @property {{current: any}} [view]  Receives the `SourceView` when it has been created.
 * @property {(files: File[], place: import("./places.js").Place) => void} [files]  Called with files that are dropped
 *   or pasted, and with the place where they should be inserted.
 * @property {() => void} [ready]  Called when the editor has been created.
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
    ${failed && html`<${NotLoaded} what=${t`The editor`} />`}
  </div>`;
}

/**
 * Return the height of a text area in lines, for browsers that do not support `field-sizing`.
 * @param {string} text
 */
export const rowsOf = (text) => Math.min(20, Math.max(3, text.split("\n", 20).length));

/**
 * Return the whole text after something was typed into its text area.
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
 * @property {[number, number] | null} selected  The selection in the text area, or null if it does not have the focus.
 */

/**
 * Return the function that creates the editor, and whether loading failed.
 *
 * The function is null until the input is near the visible part of the page and the modules are loaded.
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
      // Otherwise, a character that is being composed would be lost.
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
