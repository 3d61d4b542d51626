/**
 * What the studio and the page in the frame tell each other: the reference implementation's live preview.
 *
 * The page says `previewReady`, and gets a script to run (script.js); then what is typed, and when it was saved. The
 * page may be anybody's: it is heard only from the frame and origin that it has to be, and all that it can ask for is
 * that a field of a form be shown.
 */

import { FILES } from "../base.js";
import { useCallback, useLayoutEffect, useRef } from "../vendor/preact.js";

const ACCENT = "#2456c4";
/** @type {Promise<string> | undefined} */
let loaded;

/** The script, with whom it may talk to. A page can run it again: it ends what it did before. */
async function scriptText() {
  loaded ??= fetch(new URL("preview/script.js", FILES)).then((response) => response.text());
  return `(${await loaded})(${JSON.stringify({ parentOrigin: location.origin, accent: ACCENT })})`;
}

/**
 * The connection to the page in a frame. Returns what sends it a message.
 * @param {{current: HTMLIFrameElement | null}} frame
 * @param {string} origin  Of its page, see `Address`.
 * @param {{ready: () => void, wanted: (source: unknown) => void}} listeners  `ready` is called whenever the page has
 *   got its script, `wanted` with what it says of the text that was clicked.
 */
export function useConnection(frame, origin, listeners) {
  const latest = useRef(listeners);
  latest.current = listeners;
  const send = useCallback(
    (/** @type {string} */ type, /** @type {object | undefined} */ payload) => {
      // A page of nobody's origin can't be named; the frame is the studio's own, and nothing is sent but content.
      const target = origin === "null" ? "*" : origin;
      frame.current?.contentWindow?.postMessage(payload ? { type, payload } : { type }, target);
    },
    [origin],
  );
  // Before the page in the frame can say anything: it says that it is ready once.
  useLayoutEffect(() => {
    const heard = async (/** @type {MessageEvent} */ event) => {
      const { current } = frame;
      if (!current || event.source !== current.contentWindow || event.origin !== origin) return;
      const { type, payload } = Object(event.data);
      if (type === "previewReady") {
        send("strapiScript", { script: await scriptText() });
        latest.current.ready();
      }
      // Only while somebody is in the frame: a page can't take the focus from who types in the form.
      const inside = document.activeElement === current;
      if (type === "strapiFieldFocusIntent" && inside) latest.current.wanted(Object(payload).path);
    };
    addEventListener("message", heard);
    return () => removeEventListener("message", heard);
  }, [origin]);
  return send;
}
