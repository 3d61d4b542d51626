/** Which rows of a list are selected: one by one, a range with Shift, or all of the page. */

import { useEffect, useRef, useState } from "../vendor/preact.js";

/**
 * @typedef {object} Selection
 * @property {string[]} ids  In the order of the list.
 * @property {(id: string, ranged: boolean) => void} toggle  `ranged`: all from the last one that was toggled to this.
 * @property {(all: boolean) => void} toggleAll
 */

/**
 * The selection among the rows that are shown. It ends when the list shows others.
 * @param {import("./resource.js").Row[] | undefined} rows
 * @param {string} shown  Another text for another page.
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
