/** The editor for source text, made with CodeMirror. */

import {
  Annotation, Compartment, EditorState, EditorView, Transaction, deleteMarkupBackward, highlightSpecialChars, history,
  historyKeymap, indentLess, indentMore, insertNewlineContinueMarkup, keymap, languages, search, searchKeymap,
  standardKeymap, syntaxHighlighting, tagHighlighter, tags,
} from "../vendor/codemirror.js";
import { applyChanges, asEdited, difference } from "./line-ends.js";
import { keepPlaces } from "./places.js";

/**
 * @typedef {object} Options
 * @property {HTMLElement} parent
 * @property {string} text
 * @property {keyof typeof languages} language
 * @property {boolean} readOnly
 * @property {Record<string, string>} attributes  The attributes of the element that has the focus.
 * @property {import("./source-input.js").Key[]} keys
 * @property {(files: File[], place: import("./places.js").Place) => void} [files]  Called with files that are dropped
 *   or pasted, and with the place where they should be inserted.
 * @property {(text: string) => void} change  Called with the new text after each change in the editor.
 */

/**
 * @typedef {object} SourceView
 * @property {(text: string) => void} show  Show a different text. The cursor stays where the text around it is the
 *   same.
 * @property {(attributes: Record<string, string>) => void} describe  Set the attributes of the editable element.
 * @property {(edit: import("./source-input.js").Edit) => void} edit
 * @property {(from?: number, to?: number) => void} focus  Focus the editor and, if given, select a range.
 * @property {() => void} remove
 */

const STYLES = syntaxHighlighting(
  tagHighlighter([
    { tag: tags.heading, class: "in-heading" },
    { tag: tags.strong, class: "in-strong" },
    { tag: tags.emphasis, class: "in-emphasis" },
    { tag: tags.strikethrough, class: "in-strikethrough" },
    { tag: [tags.link, tags.url, tags.propertyName], class: "in-name" },
    { tag: [tags.monospace, tags.string], class: "in-text" },
    { tag: [tags.number, tags.bool, tags.null], class: "in-number" },
    { tag: tags.quote, class: "in-quote" },
    { tag: [tags.processingInstruction, tags.contentSeparator, tags.comment], class: "in-mark" },
  ]),
);
const FINDING = ["Mod-f", "F3", "Mod-g", "Escape"];
/** @type {import("../vendor/codemirror.js").KeyBinding[]} */
const MARKDOWN_KEYS = [
  { key: "Enter", run: insertNewlineContinueMarkup },
  { key: "Backspace", run: deleteMarkupBackward },
];
// Tab is not included, because it moves to the next field as everywhere. Ctrl-K opens the palette.
const KEYS = [
  ...historyKeymap,
  ...searchKeymap.filter(({ key }) => FINDING.includes(key ?? "")),
  ...standardKeymap.filter(({ mac }) => mac !== "Ctrl-k"),
  { key: "Mod-]", run: indentMore },
  { key: "Mod-[", run: indentLess },
];
const fromOutside = Annotation.define();
// CodeMirror itself does this shortly after a dialog has returned the focus. Keys that are pressed before would be
// lost.
const selectingOnFocus = EditorView.domEventHandlers({ focus: (_, view) => view.focus() });

/**
 * @param {Options} options
 * @returns {SourceView}
 */
export function makeSourceView({ parent, text, language, readOnly, attributes, keys, files, change }) {
  let held = text;
  const described = new Compartment();
  // A read-only editor can have the focus, too, so that users can scroll it with the keyboard.
  /** @type {Record<string, string>} */
  const always = { tabindex: "0", ...(readOnly ? { "aria-readonly": "true" } : {}) };
  const attributesOf = (/** @type {Record<string, string>} */ given) => {
    return EditorView.contentAttributes.of({ ...given, ...always });
  };
  const listener = EditorView.updateListener.of((update) => {
    if (!update.docChanged || update.transactions.some((one) => one.annotation(fromOutside))) return;
    /** @type {import("./line-ends.js").Change[]} */
    const changes = [];
    update.changes.iterChanges((from, to, _, __, made) => changes.push({ from, to, text: made.toString() }));
    held = applyChanges(held, changes);
    change(held);
  });
  const own = keys.map(({ key, edit }) => ({ key, run: () => (view.edit(edit), true) }));
  const state = EditorState.create({
    doc: asEdited(text),
    extensions: [
      listener,
      files && !readOnly ? takingFiles(files) : [],
      described.of(attributesOf(attributes)),
      selectingOnFocus,
      EditorState.readOnly.of(readOnly),
      EditorView.editable.of(!readOnly),
      EditorView.lineWrapping,
      history(),
      highlightSpecialChars(),
      search({ top: true }),
      languages[language],
      STYLES,
      keymap.of([...own, ...(language === "markdown" ? MARKDOWN_KEYS : []), ...KEYS]),
    ],
  });
  const editor = new EditorView({ parent, state });
  const view = {
    show: (/** @type {string} */ other) => {
      held = other;
      const changes = difference(editor.state.doc.toString(), asEdited(other));
      if (!changes) return;
      const annotations = [fromOutside.of(true), Transaction.addToHistory.of(false)];
      editor.dispatch({ changes: { ...changes, insert: changes.text }, annotations });
    },
    describe: (/** @type {Record<string, string>} */ given) => {
      editor.dispatch({ effects: described.reconfigure(attributesOf(given)) });
    },
    edit: (/** @type {import("./source-input.js").Edit} */ edit) => {
      const { doc, selection } = editor.state;
      const { changes, from, to } = edit(doc.toString(), selection.main.from, selection.main.to);
      editor.dispatch({
        changes: changes.map(({ text: insert, ...place }) => ({ ...place, insert })),
        selection: { anchor: from, head: to },
        scrollIntoView: true,
        userEvent: "input",
      });
      editor.focus();
    },
    focus: (/** @type {number} */ from = -1, /** @type {number} */ to = from) => {
      if (from >= 0) editor.dispatch({ selection: { anchor: from, head: to } });
      editor.focus();
    },
    remove: () => editor.destroy(),
  };
  return view;
}

/**
 * Return an extension that handles dropped or pasted files. Text is handled by the editor itself.
 * @param {(files: File[], place: import("./places.js").Place) => void} take
 */
function takingFiles(take) {
  const { moving, placeAt } = keepPlaces();
  // Office programs copy text together with a picture of the text, so text takes precedence.
  const filesOf = (/** @type {DataTransfer | null} */ data) => {
    return data?.types.includes("text/plain") ? [] : [...(data?.files ?? [])];
  };
  const handlers = EditorView.domEventHandlers({
    paste: ({ clipboardData }, view) => {
      const files = filesOf(clipboardData);
      if (files.length) take(files, placeAt(view, view.state.selection.main));
      return files.length > 0;
    },
    drop: (event, view) => {
      const files = filesOf(event.dataTransfer);
      if (!files.length) return false;
      const at = view.posAtCoords({ x: event.clientX, y: event.clientY });
      if (at !== null) view.dispatch({ selection: { anchor: at } });
      view.focus();
      take(files, placeAt(view, view.state.selection.main));
      return true;
    },
  });
  return [moving, handlers];
}
