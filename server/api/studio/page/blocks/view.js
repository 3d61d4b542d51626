/** The editor itself: a view of a document, which tells of each change, and takes in what others have changed. */

import { EditorState, EditorView, gapCursor, history } from "../vendor/prosemirror.js";
import { documentOf } from "./convert.js";
import { keys, markdown } from "./keys.js";
import { cleaned } from "./paste.js";

/**
 * @typedef {import("../vendor/prosemirror.js").Node} Node
 * @typedef {import("../vendor/prosemirror.js").Transaction} Transaction
 */

/** Whether the form that an element is in may not be changed. @param {HTMLElement} host */
export const isReadOnly = (host) => host.closest("fieldset")?.matches(":disabled") ?? false;

/**
 * Tell the editor where the cursor is now. A busy browser may do that only after the next key, which would then
 * replace what was selected before the click.
 */
const tellSelection = () => document.dispatchEvent(new Event("selectionchange"));

/**
 * @param {HTMLElement} host
 * @param {object} options
 * @param {any} options.value
 * @param {() => Record<string, string>} options.attributes  Of the element that is edited.
 * @param {() => void} options.moved  Called after each change and each move of the cursor.
 * @param {(document: Node) => void} options.changed
 * @param {() => void} options.leave  Called on Escape.
 * @param {() => void} options.link
 */
export function createView(host, { value, attributes, moved, changed, leave, link }) {
  let leaving = false; // after Escape, Tab leaves the editor, whatever it does there
  const escape = () => {
    leaving = true;
    leave();
  };
  const view = new EditorView(host, {
    state: EditorState.create({
      doc: documentOf(value),
      plugins: [markdown, ...keys({ leave: escape, link, isLeaving: () => leaving }), history(), gapCursor()],
    }),
    attributes,
    editable: () => !isReadOnly(host),
    transformPastedHTML: cleaned,
    handleDOMEvents: {
      keydown: (_, { key }) => {
        tellSelection();
        if (!["Tab", "Shift", "Escape"].includes(key)) leaving = false;
      },
      mousedown: () => {
        leaving = false;
      },
    },
    dispatchTransaction(tr) {
      view.updateState(view.state.apply(tr));
      moved();
      if (tr.docChanged && !tr.getMeta("theirs")) changed(view.state.doc);
    },
  });
  return view;
}

/**
 * Show another value, which somebody else has written, with the cursor where it was as far as it can be.
 * @param {EditorView} view
 * @param {any} value
 */
export function showValue(view, value) {
  const { doc, tr } = view.state;
  const fresh = documentOf(value);
  const before = sameAtStart(doc.children, fresh.children);
  const rest = [doc, fresh].map((one) => one.children.slice(before).toReversed());
  const after = sameAtStart(rest[0], rest[1]);
  const old = doc.children.slice(before, doc.childCount - after);
  const made = fresh.children.slice(before, fresh.childCount - after);
  const start = doc.resolve(0).posAtIndex(before, 0);
  const end = start + old.reduce((size, node) => size + node.nodeSize, 0);
  if (old.length === made.length) replaceEach(tr, old, made, start);
  else tr.replaceWith(start, end, made);
  view.dispatch(tr.setMeta("theirs", true).setMeta("addToHistory", false));
}

/** How many nodes two lists begin with that are the same. @param {readonly Node[]} a @param {readonly Node[]} b */
function sameAtStart(a, b) {
  const differs = a.findIndex((node, index) => !b[index] || !node.eq(b[index]));
  return differs < 0 ? a.length : differs;
}

/**
 * Of texts of the same kind, only what differs between their ends is replaced.
 * @param {Transaction} tr
 * @param {readonly Node[]} old
 * @param {readonly Node[]} made
 * @param {number} start
 */
function replaceEach(tr, old, made, start) {
  let at = start;
  old.forEach((node, index) => {
    const other = made[index];
    if (node.type !== other.type || !node.isTextblock) tr.replaceWith(at, at + node.nodeSize, other);
    else {
      tr.setNodeMarkup(at, null, other.attrs);
      const from = node.content.findDiffStart(other.content);
      const to = node.content.findDiffEnd(other.content);
      if (from !== null && to) {
        const overlap = Math.max(0, from - Math.min(to.a, to.b));
        const content = other.slice(from, to.b + overlap).content;
        tr.replaceWith(at + 1 + from, at + 1 + to.a + overlap, content);
      }
    }
    at += other.nodeSize;
  });
}
