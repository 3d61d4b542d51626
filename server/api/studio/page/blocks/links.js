/** Links in the text of the editor: where one is, and making one. */

import { schema } from "./schema.js";

/**
 * @typedef {object} Link
 * @property {string} url  "" where there is none yet.
 * @property {number} from
 * @property {number} to
 * @property {any} attrs
 */

const { link: type } = schema.marks;

/**
 * The link that the cursor is in, or that the selected text begins with; else what is selected.
 * @param {Pick<import("../vendor/prosemirror.js").EditorState, "selection">} state
 * @returns {Link}
 */
export function linkAt({ selection: { $from, from, to, empty } }) {
  const marks = empty ? $from.marks() : ($from.nodeAfter?.marks ?? []);
  const mark = type.isInSet(marks);
  if (!mark) return { url: "", from, to, attrs: {} };
  const siblings = $from.parent.children;
  let first = $from.index();
  if (!siblings[first] || !mark.isInSet(siblings[first].marks)) first--; // the cursor is at its end
  let last = first;
  while (first > 0 && mark.isInSet(siblings[first - 1].marks)) first--;
  while (last + 1 < siblings.length && mark.isInSet(siblings[last + 1].marks)) last++;
  return { url: mark.attrs.url, from: $from.posAtIndex(first), to: $from.posAtIndex(last + 1), attrs: mark.attrs };
}

/** Whether there can be a link where the cursor is. @param {import("../vendor/prosemirror.js").EditorState} state */
export function mayLink({ selection: { $from } }) {
  return $from.parent.inlineContent && $from.parent.type.allowsMarkType(type);
}

/**
 * Lead from what is selected to an address, or from the link that the cursor is in to another one; "" takes it away.
 * @param {string} url
 * @param {string} text  What is written where nothing is selected.
 * @returns {(tr: import("../vendor/prosemirror.js").Transaction) => boolean}
 */
export const insertLink = (url, text) => (tr) => {
  const { from, to, attrs } = linkAt(tr);
  if (!tr.selection.$from.parent.type.allowsMarkType(type)) return false;
  if (from === to) {
    if (url) tr.replaceSelectionWith(schema.text(text || url, [type.create({ url })]), false);
    return url !== "";
  }
  tr.removeMark(from, to, type);
  if (url) tr.addMark(from, to, type.create({ ...attrs, url }));
  return true;
};
