/** Editing commands for a document: changing the types of blocks, and nesting lists. Each changes a transaction. */

import { Fragment, NodeSelection, TextSelection } from "../vendor/prosemirror.js";
import { schema } from "./schema.js";

/**
 * @typedef {import("../vendor/prosemirror.js").Node} Node
 * @typedef {import("../vendor/prosemirror.js").Transaction} Transaction
 * @typedef {import("../vendor/prosemirror.js").Command} Command
 * @typedef {"ordered" | "unordered"} Format
 */

const { nodes } = schema;
const isListNode = (/** @type {Node} */ node) => node.type === nodes.list || node.type === nodes.sublist;

/**
 * Return an editor command for a change. The change returns whether it is possible.
 * @param {(tr: Transaction) => boolean} change
 * @returns {Command}
 */
export const command = (change) => (state, dispatch) => {
  const tr = state.tr;
  if (!change(tr)) return false;
  dispatch?.(tr.scrollIntoView());
  return true;
};

/**
 * Return the selected items of the innermost list.
 * @param {Transaction | import("../vendor/prosemirror.js").EditorState} tr
 */
export function selectedItems({ selection }) {
  const { $from, $to } = selection;
  if (selection instanceof NodeSelection) return null;
  for (let depth = $from.sharedDepth($to.pos); depth > 0; depth--) {
    const list = $from.node(depth);
    if (isListNode(list)) return { list, depth, first: $from.index(depth), last: $to.index(depth) };
  }
  return null;
}

/**
 * Replace nodes with others, and move the selection along with its text.
 * @param {Transaction} tr
 * @param {number} from
 * @param {number} to
 * @param {Node[]} made
 * @param {number} shift  The number of positions by which the selected text moves.
 */
function replace(tr, from, to, made, shift) {
  const { anchor, head } = tr.selection;
  tr.replaceWith(from, to, made);
  tr.setSelection(TextSelection.create(tr.doc, anchor + shift, head + shift));
}

/** @param {readonly Node[]} list */
const sizeOf = (list) => list.reduce((size, node) => size + node.nodeSize, 0);

/**
 * Return a list as it is one level deeper or higher.
 * @param {Node} node
 * @param {number} step
 * @returns {Node}
 */
function relevel(node, step) {
  if (!isListNode(node)) return node;
  const { indentLevel } = node.attrs;
  const level = typeof indentLevel === "number" ? Math.max(0, indentLevel + step) : indentLevel;
  return node.type.create({ ...node.attrs, indentLevel: level }, node.children.map((child) => relevel(child, step)));
}

/** Move the selected items into a nested list below the item before them. @param {Transaction} tr */
export function indent(tr) {
  const found = selectedItems(tr);
  if (!found || found.first === 0) return false;
  const { list, depth, first, last } = found;
  const { $from } = tr.selection;
  const items = list.children.slice(first, last + 1);
  const joins = (/** @type {Node | null} */ node) => (node && node.type === nodes.sublist ? node : null);
  const before = joins(list.maybeChild(first - 1));
  const after = joins(list.maybeChild(last + 1));
  const start = $from.posAtIndex(first, depth);
  const fresh = { format: list.attrs.format, indentLevel: depth, was: null }; // 1 in a list of the document
  const attrs = before?.attrs ?? after?.attrs ?? fresh;
  const deeper = items.map((item) => relevel(item, 1));
  const inner = [...(before?.children ?? []), ...deeper, ...(after?.children ?? [])];
  const end = start + sizeOf(items) + (after?.nodeSize ?? 0);
  replace(tr, start - (before?.nodeSize ?? 0), end, [nodes.sublist.create(attrs, inner)], before ? -1 : 1);
  return true;
}

/**
 * Move the selected items out of their list: into the surrounding list, or out of all lists as paragraphs.
 * @param {Transaction} tr
 */
export function outdent(tr) {
  const found = selectedItems(tr);
  if (!found) return false;
  const { list, depth, first, last } = found;
  const { $from } = tr.selection;
  const before = list.children.slice(0, first);
  const after = list.children.slice(last + 1);
  const nested = list.type === nodes.sublist;
  const taken = list.children.slice(first, last + 1).map((node) => (nested ? relevel(node, -1) : alone(node)));
  const start = $from.before(depth);
  const head = before.length ? [list.copy(Fragment.from([...before]))] : [];
  const attrs = before.length ? { ...list.attrs, was: null } : list.attrs;
  const tail = after.length ? [list.type.create(attrs, [...after])] : [];
  const shift = before.length ? 1 : -1;
  replace(tr, start, start + list.nodeSize, [...head, ...taken, ...tail], shift);
  return true;
}

/** Convert a child of a list to a top-level block. @param {Node} node */
function alone(node) {
  if (node.type === nodes.list_item) return nodes.paragraph.create({ was: node.attrs.was }, node.content);
  return node.type === nodes.sublist ? nodes.list.create(relevel(node, -1).attrs, node.content) : node;
}

/** Return the selected top-level blocks. @param {Transaction} tr */
function selectedBlocks({ doc, selection: { $from, $to } }) {
  const first = $from.index(0);
  const last = Math.max(first, $to.depth ? $to.index(0) : $to.index(0) - 1);
  return { first, blocks: doc.children.slice(first, last + 1), start: $from.posAtIndex(first, 0) };
}

/**
 * Convert the selected blocks to a list. If list items are selected, change the list's format, or convert them to
 * paragraphs.
 * @param {Format} format
 * @returns {(tr: Transaction) => boolean}
 */
export const toList = (format) => (tr) => {
  const inList = selectedItems(tr);
  if (inList && inList.list.attrs.format === format) return leaveLists(tr);
  if (inList) {
    const { list, depth } = inList;
    tr.setNodeMarkup(tr.selection.$from.before(depth), null, { ...list.attrs, format });
    return true;
  }
  if (tr.selection instanceof NodeSelection) return false;
  const { first, blocks, start } = selectedBlocks(tr);
  if (!blocks.every(({ type, isTextblock }) => isTextblock && type !== nodes.code_block)) return false;
  const items = blocks.map(({ attrs, content }) => nodes.list_item.create({ was: attrs.was }, content));
  const joined = tr.doc.maybeChild(first - 1);
  const list = joined?.type === nodes.list && joined.attrs.format === format ? joined : null;
  const made = list
    ? list.copy(list.content.append(Fragment.from(items)))
    : nodes.list.create({ format, was: null }, items);
  replace(tr, start - (list?.nodeSize ?? 0), start + sizeOf(blocks), [made], list ? -1 : 1);
  return true;
};

/** Move the selected items out of all lists that they are in. @param {Transaction} tr */
function leaveLists(tr) {
  let left = false;
  while (selectedItems(tr) && outdent(tr)) left = true;
  return left;
}

/**
 * Convert the selected blocks to another type.
 * @param {string} name
 * @param {object} [attrs]
 * @returns {(tr: Transaction) => boolean}
 */
export const toBlock = (name, attrs = {}) => (tr) => {
  if (tr.selection instanceof NodeSelection) return false;
  leaveLists(tr);
  const { from, to } = tr.selection;
  const { blocks } = selectedBlocks(tr);
  if (!blocks.every((block) => block.isTextblock)) return false;
  const type = nodes[name];
  tr.setBlockType(from, to, type, (/** @type {Node} */ old) => {
    const same = old.type === type ? old.attrs : {};
    return { ...same, was: old.attrs.was, ...attrs };
  });
  return true;
};

/** Move an empty item out of its list. @param {Transaction} tr */
export function leaveEmptyItem(tr) {
  const { $from, empty } = tr.selection;
  return empty && $from.parent.type === nodes.list_item && $from.parent.content.size === 0 && outdent(tr);
}

/** Convert a block to a paragraph if the cursor is at its start. @param {Transaction} tr */
export function plainAtStart(tr) {
  const { $from, empty } = tr.selection;
  if (!empty || $from.parentOffset > 0 || !$from.parent.isTextblock) return false;
  if ($from.parent.type === nodes.list_item) return outdent(tr);
  return $from.parent.type !== nodes.paragraph && toBlock("paragraph")(tr);
}

/** Leave a code block if the cursor is on its empty last line. @param {Transaction} tr */
export function leaveCode(tr) {
  const { $from, empty } = tr.selection;
  const { parent } = $from;
  const atEnd = empty && $from.parentOffset === parent.content.size;
  if (parent.type !== nodes.code_block || !atEnd || !parent.textContent.endsWith("\n")) return false;
  tr.delete($from.pos - 1, $from.pos);
  const after = tr.selection.$from.after();
  tr.insert(after, nodes.paragraph.create());
  tr.setSelection(TextSelection.create(tr.doc, after + 1));
  return true;
}

/** Start a paragraph below the selected picture or piece of source. @param {Transaction} tr */
export function paragraphBelow(tr) {
  const { selection } = tr;
  if (!(selection instanceof NodeSelection) || selection.$from.depth) return false;
  tr.insert(selection.to, nodes.paragraph.create());
  tr.setSelection(TextSelection.create(tr.doc, selection.to + 1));
  return true;
}

/** @param {Transaction} tr */
export function breakLine(tr) {
  if (tr.selection.$from.parent.type === nodes.code_block || !tr.selection.$from.parent.inlineContent) return false;
  tr.replaceSelectionWith(nodes.line_break.create());
  return true;
}

/**
 * Insert a picture after the selected block. If that is an empty paragraph, replace it.
 * @param {object} image
 * @returns {(tr: Transaction) => boolean}
 */
export const insertImage = (image) => (tr) => {
  const { blocks, start } = selectedBlocks(tr);
  const end = start + sizeOf(blocks);
  const only = blocks.length === 1 && blocks[0].type === nodes.paragraph && blocks[0].content.size === 0;
  const at = only ? start : end;
  const last = tr.doc.content.size === end;
  const made = [nodes.image.create({ image }), ...(last ? [nodes.paragraph.create()] : [])];
  tr.replaceWith(at, end, made);
  tr.setSelection(NodeSelection.create(tr.doc, at));
  return true;
};

/**
 * Change the attributes of the selected node, or of the block that contains the cursor.
 * @param {object} attrs
 * @returns {(tr: Transaction) => boolean}
 */
export const setMembers = (attrs) => (tr) => {
  const { selection } = tr;
  if (selection instanceof NodeSelection) {
    tr.setNodeMarkup(selection.from, null, { ...selection.node.attrs, ...attrs });
    tr.setSelection(NodeSelection.create(tr.doc, selection.from));
  } else {
    const { $from } = selection;
    if (!$from.depth) return false;
    tr.setNodeMarkup($from.before(), null, { ...$from.parent.attrs, ...attrs });
  }
  return true;
};
