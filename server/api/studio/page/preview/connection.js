/**
 * The messages between the studio and the previewed page, which follow the protocol of Strapi's live preview.
 *
 * The page sends `previewReady` and receives a script to run (script.js). Then it receives messages when something is
 * typed or saved. The page may be written by anybody: messages are accepted only from the right frame and origin, and
 * can only cause a field of the form to be shown.
 */

import { FILES } from "../base.js";
import { useCallback, useLayoutEffect, useRef } from "../vendor/preact.js";

const ACCENT = "#2456c4";
/** @type {Promise<string> | undefined} */
let loaded;

/** Return the script, configured with the origin of the studio. If a page runs it again, the previous run is ended. */
async function scriptText() {
  loaded ??= fetch(new URL("preview/script.js", FILES)).then((response) => response.text());
  return `(${await loaded})(${JSON.stringify({ parentOrigin: location.origin, accent: ACCENT })})`;
}

/**
 * Connect to the page in a frame. Returns a function that sends a message to the page.
 * @param {{current: HTMLIFrameElement | null}} frame
 * @param {string} origin  The origin of the page, see `Address`.
 * @param {{ready: () => void, wanted: (source: unknown) => void}} listeners  `ready` is called whenever the page has
 *   received its script. `wanted` is called with the source of a text that was clicked.
 */
export function useConnection(frame, origin, listeners) {
  const latest = useRef(listeners);
  latest.current = listeners;
  const send = useCallback(
    (/** @type {string} */ type, /** @type {object | undefined} */ payload) => {
      // A page without an origin can't be named as the target. This is safe, because the frame belongs to the studio,
      // and the messages contain only content.
      const target = origin === "null" ? "*" : origin;
      frame.current?.contentWindow?.postMessage(payload ? { type, payload } : { type }, target);
    },
    [origin],
  );
  // This runs before the page in the frame can send its only `previewReady` message.
  useLayoutEffect(() => {
    const heard = async (/** @type {MessageEvent} */ event) => {
      const { current } = frame;
      if (!current || event.source !== current.contentWindow || event.origin !== origin) return;
      const { type, payload } = Object(event.data);
      if (type === "previewReady") {
        send("strapiScript", { script: await scriptText() });
        latest.current.ready();
      }
      // Only if the focus is in the frame: a page must not take the focus from a user who types in the form.
      const inside = document.activeElement === current;
      if (type === "strapiFieldFocusIntent" && inside) latest.current.wanted(Object(payload).path);
    };
    addEventListener("message", heard);
    return () => removeEventListener("message", heard);
  }, [origin]);
  return send;
}
