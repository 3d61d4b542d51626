/** Reads the server's event stream, GET /events. */

import { SITE } from "../base.js";
import { checkConnection } from "./connection.js";

const AGAIN_MS = 2000; // until a stream that has ended is asked for again
const REFUSED_MS = 60_000; // until one that was refused is

/**
 * Receive events while the tab is shown. In a hidden tab, the stream is closed; it is opened again when the tab is
 * shown. Returns a function that closes it.
 * @param {string} query  The parameters that select events.
 * @param {(event: any) => void} tell  Called with each event, or with null if events were missed.
 * @param {(missed: boolean) => void} begun  Called when a stream was opened, with whether there was one before.
 * @param {() => void} [ended]  Called when a stream has ended by itself.
 */
export function listen(query, tell, begun, ended) {
  let stream = /** @type {AbortController | null} */ (null);
  let missed = false;
  const run = async () => {
    const mine = (stream = new AbortController());
    while (!mine.signal.aborted) {
      const end = await follow(query, mine.signal, tell, () => begun(missed));
      if (mine.signal.aborted) return;
      missed = true;
      ended?.();
      if (end === "ended") checkConnection();
      await new Promise((done) => setTimeout(done, end === "refused" ? REFUSED_MS : AGAIN_MS));
    }
  };
  const shown = () => {
    if (document.hidden) {
      stream?.abort();
      stream = null;
      missed = true;
    } else if (!stream) run();
  };
  shown();
  document.addEventListener("visibilitychange", shown);
  return () => {
    document.removeEventListener("visibilitychange", shown);
    stream?.abort();
  };
}

/**
 * Read an event stream until it ends. Resolves to how it ended.
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
  else if (data && /^((entry|media|schema|site)\.|presence$)/.test(kind)) tell(JSON.parse(data));
}
