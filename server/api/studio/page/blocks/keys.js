/** Keyboard shortcuts of the editor, and Markdown characters that are converted while typing. */

import {
  InputRule, baseKeymap, chainCommands, createParagraphNear, exitCode, inputRules, keymap, newlineInCode, redo,
  splitBlockAs, toggleMark, undo, undoInputRule,
} from "../vendor/prosemirror.js";
import {
  breakLine, command, indent, leaveCode, leaveEmptyItem, outdent, paragraphBelow, plainAtStart, toBlock, toList,
} from "./commands.js";
import { schema } from "./schema.js";

/** @typedef {import("../vendor/prosemirror.js").Transaction} Transaction */

const { nodes, marks } = schema;
const LEVELS = [1, 2, 3, 4, 5, 6];

/**
 * Split a block into two blocks of the same type. At the end of a block, start a paragraph instead. Unknown properties
 * stay with the first block.
 */
const split = splitBlockAs((node, atEnd) => {
  if (node.type === nodes.list_item) return { type: nodes.list_item };
  return atEnd ? { type: nodes.paragraph } : { type: node.type, attrs: { ...node.attrs, was: null } };
});

/**
 * Move an item out of a nested list, but not out of the outermost list: there, Shift-Tab leaves the editor.
 * @param {Transaction} tr
 */
const outdentNested = (tr) => tr.selection.$from.depth > 2 && outdent(tr);

/**
 * @param {{leave: () => void, link: () => void, isLeaving: () => boolean}} actions  `isLeaving` returns whether Tab
 *   moves the focus to the next element on the page, even in a list.
 */
export function keys({ leave, link, isLeaving }) {
  const act = (/** @type {() => void} */ action) => () => {
    action();
    return true;
  };
  const unlessLeaving = (/** @type {import("../vendor/prosemirror.js").Command} */ run) => {
    return /** @type {import("../vendor/prosemirror.js").Command} */ ((...given) => !isLeaving() && run(...given));
  };
  const headings = LEVELS.map((level) => [`Mod-Alt-${level}`, command(toBlock("heading", { level }))]);
  return [
    keymap({
      "Mod-b": toggleMark(marks.bold),
      "Mod-i": toggleMark(marks.italic),
      "Mod-u": toggleMark(marks.underline),
      "Mod-Shift-x": toggleMark(marks.strikethrough),
      "Mod-e": toggleMark(marks.code),
      "Mod-Shift-k": act(link),
      "Mod-z": undo,
      "Mod-y": redo,
      "Mod-Shift-z": redo,
      "Mod-Alt-0": command(toBlock("paragraph")),
      ...Object.fromEntries(headings),
      "Mod-Shift-7": command(toList("ordered")),
      "Mod-Shift-8": command(toList("unordered")),
      "Shift-Enter": chainCommands(newlineInCode, command(breakLine)),
      "Mod-Enter": exitCode,
      Enter: chainCommands(
        ...[leaveCode, leaveEmptyItem, paragraphBelow].map(command), newlineInCode, createParagraphNear, split,
      ),
      Backspace: chainCommands(undoInputRule, command(plainAtStart)),
      Tab: unlessLeaving(command(indent)),
      "Shift-Tab": unlessLeaving(command(outdentNested)),
      Escape: act(leave),
      "Alt-F10": act(leave),
    }),
    keymap(baseKeymap),
  ];
}

/**
 * Return an input rule for characters at the start of a paragraph.
 * @param {RegExp} pattern
 * @param {(match: RegExpMatchArray) => (tr: Transaction) => boolean} change
 */
function atStart(pattern, change) {
  return new InputRule(pattern, (state, match, start, end) => {
    if (state.selection.$from.parent.type !== nodes.paragraph) return null;
    const tr = state.tr.delete(start, end);
    return change(match)(tr) ? tr : null;
  });
}

export const markdown = inputRules({
  rules: [
    atStart(/^(#{1,6})\s$/, ([, signs]) => toBlock("heading", { level: signs.length })),
    atStart(/^[-*]\s$/, () => toList("unordered")),
    atStart(/^1[.)]\s$/, () => toList("ordered")),
    atStart(/^>\s$/, () => toBlock("quote")),
    atStart(/^```$/, () => toBlock("code_block")),
  ],
});
