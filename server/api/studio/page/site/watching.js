/** What the server says of the site as a whole, asked again while the page is shown. */

import { ask } from "../api.js";
import { useBack } from "../connection/connection.js";
import { useCallback, useEffect, useRef, useState } from "../vendor/preact.js";

/**
 * @typedef {object} Watched
 * @property {import("../api.js").Answer} [answer]  The last answer; it stays while the next is asked for.
 * @property {any} [error]
 */

/**
 * The answer to a request, asked for again every so many milliseconds, and when the tab is shown again. Not all that
 * is told here is in the log of events: a file that is broken changes no document.
 * @param {string} path  From the site's root; "" asks nothing.
 * @param {object} query
 * @param {number} every
 * @returns {[Watched, () => Promise<void>]}  And what asks again at once.
 */
export function useWatched(path, query, every) {
  const [watched, set] = useState(/** @type {Watched} */ ({}));
  const asked = JSON.stringify(query);
  const latest = useRef(0);
  const load = useCallback(async () => {
    if (!path) return;
    const mine = ++latest.current;
    try {
      const answer = await ask(path, { query: JSON.parse(asked) });
      if (mine === latest.current) set({ answer });
    } catch (error) {
      if (mine === latest.current) set((before) => ({ ...before, error }));
    }
  }, [path, asked]);
  useEffect(() => {
    let timer = 0;
    const again = () => {
      clearTimeout(timer);
      if (document.hidden) return;
      load().finally(() => {
        clearTimeout(timer);
        timer = setTimeout(again, every);
      });
    };
    again();
    document.addEventListener("visibilitychange", again);
    return () => {
      latest.current += 1;
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", again);
    };
  }, [load, every]);
  useBack(load);
  return [watched, load];
}
