/** Receives changes by others while a document is open, from the server's event stream. */

import { SITE } from "../base.js";
import { checkConnection } from "../connection/connection.js";
import { useEffect, useRef } from "../vendor/preact.js";

const AGAIN_MS = 2000; // until a stream that has ended is asked for again
const REFUSED_MS = 60_000; // until one that was refused is

/**
 * Call a function when a document has changed, no matter who changed it. It is also called with `unsure` when changes
 * may have been missed, for example at the start. In a hidden tab, the stream is closed; it is opened again when the
 * tab is shown.
 * @param {string} type  The name of the content type, or "" for no events.
 * @param {string} id
 * @param {(unsure?: boolean) => void} changed
 * @param {(told: any) => void} [others]  Called with information about who else has opened the document.
 */
export function useChanges(type, id, changed, others) {
  const latest = useRef(changed);
  latest.current = changed;
  const people = useRef(others);
  people.current = others;
  const query = others ? `types=${type}&presence=${encodeURIComponent(`${type}:${id}`)}` : `types=${type}`;
  useEffect(() => {
    if (!type || !id) return;
    let stream = /** @type {AbortController | null} */ (null);
    let missed = false;
    const tell = (/** @type {any} */ event) => {
      if (event?.people) people.current?.(event);
      else if (event === null || event.documentId === id || event.event === "site.update") latest.current();
    };
    const listen = async () => {
      const mine = (stream = new AbortController());
      while (!mine.signal.aborted) {
        const ended = await follow(query, mine.signal, tell, () => {
          latest.current(!missed); // Between the read and this, something may have changed.
        });
        if (mine.signal.aborted) return;
        missed = true;
        if (ended === "ended") checkConnection();
        await new Promise((done) => setTimeout(done, ended === "refused" ? REFUSED_MS : AGAIN_MS));
      }
    };
    const shown = () => {
      if (document.hidden) {
        stream?.abort();
        stream = null;
        missed = true;
      } else if (!stream) listen();
    };
    shown();
    document.addEventListener("visibilitychange", shown);
    return () => {
      document.removeEventListener("visibilitychange", shown);
      stream?.abort();
    };
  }, [type, id, query]);
}

/**
 * Read an event stream until it ends. Resolves to how it ended. `tell` is called with each event, or with null if
 * events were missed. `begun` is called when the stream has been opened.
 * @param {string} query
 * @param {AbortSignal} signal
 * @param {(event: any) => void} tell
 * @param {() => void} begun
 * @returns {Promise<"ended" | "refused">}
 */
async function follow(query, signal, tell, begun) {
  try {
    const url = new URL(`events?${query}`, SITE);
    const headers = { Accept: "text/event-stream", "Bifolio-Studio": "1" };
    const { ok, body } = await fetch(url, { headers, signal });
    if (!ok || !body) return "refused";
    begun();
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    for (let rest = ""; ; ) {
      const { value, done } = await reader.read();
      if (done) return "ended";
      const parts = (rest + value).split("\n\n");
      rest = parts.pop() ?? "";
      for (const part of parts) read(part, tell);
    }
  } catch {
    return "ended";
  }
}

/**
 * @param {string} part  The lines of one event.
 * @param {(event: any) => void} tell
 */
function read(part, tell) {
  const lines = part.split("\n");
  const kind = lines.find((line) => line.startsWith("event: "))?.slice(7) ?? "";
  const data = lines.find((line) => line.startsWith("data: "))?.slice(6);
  if (kind === "restart") tell(null);
  else if (data && /^(entry\.|site\.|presence$)/.test(kind)) tell(JSON.parse(data));
}
