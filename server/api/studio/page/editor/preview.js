/** The preview of Markdown, next to its source or in its place. */

import { NotLoaded, loadPart } from "../connection/parts.js";
import { t } from "../language.js";
import { html, useEffect, useRef, useState } from "../vendor/preact.js";

const REST_MS = 120; // a text is shown once typing rests for as long

/** @param {{id: string, label: string, text: string}} props  The id and label of the input. */
export function Preview({ id, label, text }) {
  const place = useRef(/** @type {HTMLElement | null} */ (null));
  const first = useRef(true);
  const [failed, fail] = useState(false);
  useEffect(() => {
    let wanted = true;
    const show = async () => {
      const { rendered } = await loadPart("editor/rendering.js");
      if (wanted) place.current?.replaceChildren(rendered(text));
    };
    const timer = setTimeout(() => show().catch(() => fail(true)), first.current ? 0 : REST_MS);
    first.current = false;
    return () => {
      wanted = false;
      clearTimeout(timer);
    };
  }, [text]);
  return html`<div class="markdown-preview" role="region" tabindex="0" id=${`${id}-preview`}
    aria-label=${t`Preview of ${label}`}>
    ${failed
      ? html`<${NotLoaded} what=${t`The preview`} />`
      : html`<div class="prose" ref=${place} />`}
  </div>`;
}
