// What the studio's modules import of CodeMirror: the editor of Markdown and JSON.
import { jsonLanguage } from "@codemirror/lang-json";
import { markdownLanguage } from "@codemirror/lang-markdown";
import { StyleModule } from "style-mod";

export { history, historyKeymap, indentLess, indentMore, standardKeymap } from "@codemirror/commands";
export { deleteMarkupBackward, insertNewlineContinueMarkup } from "@codemirror/lang-markdown";
export { syntaxHighlighting } from "@codemirror/language";
export { search, searchKeymap } from "@codemirror/search";
export { Annotation, Compartment, EditorState, Transaction } from "@codemirror/state";
export { EditorView, highlightSpecialChars, keymap } from "@codemirror/view";
export { tagHighlighter, tags } from "@lezer/highlight";
export const languages = { json: jsonLanguage, markdown: markdownLanguage };

const sheets = new WeakMap();

/** The style sheet of a style module. */
function sheetOf(module) {
  if (!sheets.has(module)) {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(module.getRules());
    sheets.set(module, sheet);
  }
  return sheets.get(module);
}

// CodeMirror adds its styles as a style element, which the studio's Content-Security-Policy does not allow.
StyleModule.mount = (root, modules) => {
  const wanted = [modules].flat().map(sheetOf).filter((sheet) => !root.adoptedStyleSheets.includes(sheet));
  if (wanted.length) root.adoptedStyleSheets = [...root.adoptedStyleSheets, ...wanted];
};
