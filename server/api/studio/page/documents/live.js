/** Receives changes by others while a document is open, from the server's event stream. */

import { listen } from "../connection/stream.js";
import { useEffect, useRef } from "../vendor/preact.js";

/**
 * Call a function when a document has changed, no matter who changed it. It is also called with `unsure` when changes
 * may have been missed, for example at the start or after the tab was hidden.
 * @param {string} type  The name of the content type, or "" for no events.
 * @param {string} id
 * @param {(unsure?: boolean) => void} changed
 * @param {() => void} renew  Called when the content type itself has changed.
 * @param {(told: any) => void} [others]  Called with information about who else has opened the document.
 */
export function useChanges(type, id, changed, renew, others) {
  const latest = useRef(changed);
  latest.current = changed;
  const people = useRef(others);
  people.current = others;
  const query = others ? `types=${type}&presence=${encodeURIComponent(`${type}:${id}`)}` : `types=${type}`;
  useEffect(() => {
    if (!type || !id) return undefined;
    const tell = (/** @type {any} */ event) => {
      if (event?.people) people.current?.(event);
      else if (event?.event === "schema.update") renew();
      else if (event === null || event.documentId === id || event.event === "site.update") latest.current();
    };
    // Between the read and the beginning of the stream, something may have changed.
    return listen(query, tell, (missed) => latest.current(!missed));
  }, [type, id, query]);
}
