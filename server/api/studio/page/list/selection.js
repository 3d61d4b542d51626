/** The selected rows of a list: rows can be selected one by one, as a range with Shift, or all rows on the page. */

import { useEffect, useRef, useState } from "../vendor/preact.js";

/**
 * @typedef {object} Selection
 * @property {string[]} ids  The ids of the selected rows, in the order of the list.
 * @property {(id: string, ranged: boolean) => void} toggle  Select or deselect a row. If `ranged`, this includes all
 *   rows since the one that was toggled before.
 * @property {(all: boolean) => void} toggleAll
 */

/**
 * Return the selection among the shown rows. It is cleared when the list shows another page.
 * @param {import("./resource.js").Row[] | undefined} rows
 * @param {string} shown  A string that identifies the page.
 * @returns {Selection}
 */
export function useSelection(rows, shown) {
  const [selected, set] = useState(() => /** @type {Set<string>} */ (new Set()));
  const last = useRef("");
  useEffect(() => set(new Set()), [shown]);
  const all = (rows ?? []).map(({ id }) => id);
  /** @param {string} id @param {boolean} ranged */
  const toggle = (id, ranged) => {
    const [from, to] = [all.indexOf(last.current), all.indexOf(id)];
    const ids = ranged && from >= 0 ? all.slice(Math.min(from, to), Math.max(from, to) + 1) : [id];
    const next = new Set(selected);
    for (const one of ids) selected.has(id) ? next.delete(one) : next.add(one);
    last.current = id;
    set(next);
  };
  return {
    ids: all.filter((id) => selected.has(id)),
    toggle,
    toggleAll: (every) => set(new Set(every ? all : [])),
  };
}
