// What the editor of `blocks` is made of: ProseMirror, as far as it is used.
export { baseKeymap, chainCommands, createParagraphNear, exitCode, lift, liftEmptyBlock, newlineInCode, splitBlockAs, toggleMark } from "prosemirror-commands";
export { gapCursor } from "prosemirror-gapcursor";
export { history, redo, redoDepth, undo, undoDepth } from "prosemirror-history";
export { InputRule, inputRules, undoInputRule } from "prosemirror-inputrules";
export { keymap } from "prosemirror-keymap";
export { Fragment, Schema, Slice } from "prosemirror-model";
export { EditorState, NodeSelection, Plugin, Selection, TextSelection } from "prosemirror-state";
export { EditorView } from "prosemirror-view";
