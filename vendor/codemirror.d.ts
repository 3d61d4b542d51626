// The types of codemirror.js, for those who check the studio's modules: `make test-studio` does.
import { Language } from "@codemirror/language";

export { history, historyKeymap, indentLess, indentMore, standardKeymap } from "@codemirror/commands";
export { deleteMarkupBackward, insertNewlineContinueMarkup } from "@codemirror/lang-markdown";
export { syntaxHighlighting } from "@codemirror/language";
export { search, searchKeymap } from "@codemirror/search";
export { Annotation, Compartment, EditorState, Transaction } from "@codemirror/state";
export { EditorView, KeyBinding, highlightSpecialChars, keymap } from "@codemirror/view";
export { tagHighlighter, tags } from "@lezer/highlight";
export const languages: { json: Language; markdown: Language };
