/** Links in the editor: finding the link at the cursor, and creating a link. */

import { schema } from "./schema.js";

/**
 * @typedef {object} Link
 * @property {string} url  The link's target, or "" for a new link.
 * @property {number} from
 * @property {number} to
 * @property {any} attrs
 */

const { link: type } = schema.marks;

/**
 * Return the link that contains the cursor or the start of the selection. If there is none, return the selection as a
 * new link.
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

/** Return whether a link is allowed at the cursor. @param {import("../vendor/prosemirror.js").EditorState} state */
export function mayLink({ selection: { $from } }) {
  return $from.parent.inlineContent && $from.parent.type.allowsMarkType(type);
}

/**
 * Link the selected text to a URL, or change the target of the link at the cursor. An empty URL removes the link.
 * @param {string} url
 * @param {string} text  The text to insert if nothing is selected.
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
