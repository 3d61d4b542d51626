/** An editor of source text, by CodeMirror: what is in it, its keys, and how texts go in and come out. */

import {
  Annotation, Compartment, EditorState, EditorView, Transaction, deleteMarkupBackward, highlightSpecialChars, history,
  historyKeymap, indentLess, indentMore, insertNewlineContinueMarkup, keymap, languages, search, searchKeymap,
  standardKeymap, syntaxHighlighting, tagHighlighter, tags,
} from "../vendor/codemirror.js";
import { applyChanges, asEdited, difference } from "./line-ends.js";

/**
 * @typedef {object} Options
 * @property {HTMLElement} parent
 * @property {string} text
 * @property {keyof typeof languages} language
 * @property {boolean} readOnly
 * @property {Record<string, string>} attributes  Of the element that has the focus.
 * @property {import("./source-input.js").Key[]} keys
 * @property {(files: File[]) => void} [files]  Called with files that are dropped or pasted.
 * @property {(text: string) => void} change  Called with what was made of the text here.
 */

/**
 * @typedef {object} SourceView
 * @property {(text: string) => void} show  Show another text. The cursor stays where nothing else is different.
 * @property {(attributes: Record<string, string>) => void} describe  Give it other attributes.
 * @property {(edit: import("./source-input.js").Edit) => void} edit
 * @property {(from?: number, to?: number) => void} focus  With something selected, where that is said.
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
// Tab is not among them: it leads to the next field, as it does everywhere. Ctrl-K opens the palette.
const KEYS = [
  ...historyKeymap,
  ...searchKeymap.filter(({ key }) => FINDING.includes(key ?? "")),
  ...standardKeymap.filter(({ mac }) => mac !== "Ctrl-k"),
  { key: "Mod-]", run: indentMore },
  { key: "Mod-[", run: indentLess },
];
const fromOutside = Annotation.define();

/**
 * @param {Options} options
 * @returns {SourceView}
 */
export function makeSourceView({ parent, text, language, readOnly, attributes, keys, files, change }) {
  let held = text;
  const described = new Compartment();
  // Also what is not editable has the focus, so that it can be read to its end by the keyboard.
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
 * Take files that are dropped or pasted: text goes its own way.
 * @param {(files: File[]) => void} take
 */
function takingFiles(take) {
  const given = (/** @type {DataTransfer | null} */ data) => {
    // What office programs copy is text, with a picture of it.
    const files = data?.types.includes("text/plain") ? [] : [...(data?.files ?? [])];
    if (files.length) take(files);
    return files.length > 0;
  };
  return EditorView.domEventHandlers({
    paste: ({ clipboardData }) => given(clipboardData),
    drop: (event, view) => {
      const place = view.posAtCoords({ x: event.clientX, y: event.clientY });
      if (event.dataTransfer?.files.length && place !== null) view.dispatch({ selection: { anchor: place } });
      return given(event.dataTransfer);
    },
  });
}
