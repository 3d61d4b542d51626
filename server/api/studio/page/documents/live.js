/** Hears of what others change, while a document is open: a stream of the server's log of events. */

import { SITE } from "../base.js";
import { checkConnection } from "../connection/connection.js";
import { useEffect, useRef } from "../vendor/preact.js";

const AGAIN_MS = 2000; // until a stream that has ended is asked for again
const REFUSED_MS = 60_000; // until one that was refused is

/**
 * Call a function when a document of a type has changed, whoever did it, and when changes may have been missed: then,
 * at first, it is told that it is not sure. A hidden tab does not listen, and asks again once it is shown.
 * @param {string} type  The name of the content type, "" to hear nothing.
 * @param {string} id
 * @param {(unsure?: boolean) => void} changed
 * @param {(told: any) => void} [others]  Called with who else is at the document, where that is wanted.
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
 * Read a stream until it ends; returns how it did. `tell` is called with each event, or with null where
 * events are missing, and `begun` when the stream is open.
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

/** @param {string} part  The lines of one event. @param {(event: any) => void} tell */
function read(part, tell) {
  const lines = part.split("\n");
  const kind = lines.find((line) => line.startsWith("event: "))?.slice(7) ?? "";
  const data = lines.find((line) => line.startsWith("data: "))?.slice(6);
  if (kind === "restart") tell(null);
  else if (data && /^(entry\.|site\.|presence$)/.test(kind)) tell(JSON.parse(data));
}
