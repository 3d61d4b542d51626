/** Positions in a text at which something is inserted later, such as an uploaded picture. They move with the text. */

import { Annotation, EditorView } from "../vendor/codemirror.js";

/** @typedef {import("../vendor/codemirror.js").EditorView} View */

/**
 * @typedef {object} Place
 * @property {(text: string) => void} fill  Insert the text for which the place was reserved. It replaces the text that
 *   was selected there, if that has not changed. The cursor moves to the end of that text if it is still there.
 * @property {() => void} leave  Give the place up.
 */

/** @typedef {{from: number, to: number, text: string}} Range */

/** Return the reserved places of one editor. `moving` is the editor extension that moves them. */
export function keepPlaces() {
  /** @type {Range[]} */
  const ranges = []; // in the order in which they began to wait
  const filling = Annotation.define();
  const moving = EditorView.updateListener.of(({ transactions }) => {
    for (const transaction of transactions) {
      if (transaction.docChanged) move(ranges, transaction.changes, ranges.indexOf(transaction.annotation(filling)));
    }
  });
  const leave = (/** @type {Range} */ range) => void ranges.splice(ranges.indexOf(range), 1);

  /**
   * @param {View} view
   * @param {{from: number, to: number}} selected
   * @returns {Place}
   */
  const placeAt = (view, { from, to }) => {
    const range = { from, to, text: view.state.sliceDoc(from, to) };
    ranges.push(range);
    const fill = (/** @type {string} */ text) => {
      const { state } = view;
      const isSame = state.sliceDoc(range.from, range.to) === range.text;
      const place = { from: range.from, to: isSame ? range.to : range.from };
      const { main } = state.selection;
      const isHere = main.from === place.from && main.to === place.to;
      view.dispatch({
        changes: { ...place, insert: text },
        ...(isHere ? { selection: { anchor: place.from + text.length } } : {}),
        annotations: filling.of(range),
        userEvent: "input.paste",
      });
      leave(range);
    };
    return { fill, leave: () => leave(range) };
  };
  return { moving, placeAt };
}

/**
 * Move ranges along with a change. Text that is typed at a place comes after the place. Text that is inserted at a
 * reserved place comes before places that were reserved later.
 * @param {Range[]} ranges
 * @param {{mapPos: (at: number, side: number) => number}} changes
 * @param {number} filled  The index of the range for which text is inserted, or -1.
 */
function move(ranges, changes, filled) {
  ranges.forEach((range, index) => {
    range.from = changes.mapPos(range.from, filled >= 0 && index > filled ? 1 : -1);
    range.to = Math.max(range.from, changes.mapPos(range.to, -1));
  });
}
