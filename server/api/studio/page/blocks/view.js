/** The view of the editor: it displays a document, reports each change, and applies changes by others. */

import { EditorState, EditorView, gapCursor, history } from "../vendor/prosemirror.js";
import { documentOf } from "./convert.js";
import { keys, markdown } from "./keys.js";
import { cleaned } from "./paste.js";

/**
 * @typedef {import("../vendor/prosemirror.js").Node} Node
 * @typedef {import("../vendor/prosemirror.js").Transaction} Transaction
 */

/** Return whether an element is in a form that can't be edited. @param {HTMLElement} host */
export const isReadOnly = (host) => host.closest("fieldset")?.matches(":disabled") ?? false;

/**
 * Report the position of the cursor to the editor. Otherwise, a busy browser may do so only after the next key press,
 * which would then replace the text that was selected before the click.
 */
const tellSelection = () => document.dispatchEvent(new Event("selectionchange"));

/**
 * @param {HTMLElement} host
 * @param {object} options
 * @param {any} options.value
 * @param {() => Record<string, string>} options.attributes  Return the attributes of the editable element.
 * @param {() => void} options.moved  Called after each change, and after each move of the cursor.
 * @param {(document: Node) => void} options.changed
 * @param {() => void} options.leave  Called when Escape is pressed.
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
 * Show a value that someone else has written. The cursor stays at the same place if possible.
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

/** Return the number of equal nodes at the start of two lists. @param {readonly Node[]} a @param {readonly Node[]} b */
function sameAtStart(a, b) {
  const differs = a.findIndex((node, index) => !b[index] || !node.eq(b[index]));
  return differs < 0 ? a.length : differs;
}

/**
 * Replace nodes. If old and new nodes have the same types, replace only the text that differs.
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
