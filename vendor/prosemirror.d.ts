// The types of prosemirror.js, for those who check the studio's modules: `make test-studio` does.
export * from "prosemirror-commands";
export { gapCursor } from "prosemirror-gapcursor";
export { history, redo, redoDepth, undo, undoDepth } from "prosemirror-history";
export { InputRule, inputRules, undoInputRule } from "prosemirror-inputrules";
export { keymap } from "prosemirror-keymap";
export { Fragment, Mark, Node, NodeType, Schema, Slice } from "prosemirror-model";
export { type Command, EditorState, NodeSelection, Plugin, Selection, TextSelection, Transaction } from "prosemirror-state";
export { EditorView } from "prosemirror-view";
