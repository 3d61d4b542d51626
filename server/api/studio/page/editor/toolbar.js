/** The Markdown toolbar. Tab moves to the whole toolbar; the arrow keys move between its buttons. */

import { Icon } from "../icons.js";
import { t } from "../language.js";
import { html, useState } from "../vendor/preact.js";
import { TOOLS } from "./formatting.js";

/** The modifier key has different names on Apple devices, both in labels and for browsers. */
const APPLE = /Mac|iPhone|iPad/.test(navigator.platform);

/**
 * @param {{id: string, edit: ((edit: import("./source-input.js").Edit) => void) | null, picture?: () => void}} props
 *   `edit` is null as long as nothing can be edited. `picture` opens the dialog for pictures, if there is one.
 */
export function Toolbar({ id, edit, picture }) {
  const [at, setAt] = useState(0);
  const place = (/** @type {number} */ index) => ({
    tabindex: index === at ? 0 : -1,
    "aria-disabled": !edit,
    onFocus: () => setAt(index),
    // A click does not move the focus, so that the text stays selected.
    onMouseDown: (/** @type {Event} */ event) => event.preventDefault(),
  });
  return html`<div class="markdown-tools" role="toolbar" aria-label=${t`Formatting`} aria-controls=${id}
    onKeyDown=${steer}>
    ${TOOLS.map(({ label, icon, key, edit: does }, index) => html`<button class="icon-button" type="button" key=${label}
      aria-label=${label} aria-keyshortcuts=${key && shortcutOf(key)} title=${key ? `${label} (${keysOf(key)})` : label}
      ...${place(index)} onClick=${() => edit?.(does)}><${Icon} name=${icon} /></button>`)}
    ${picture && html`<button class="icon-button" type="button" aria-label=${t`Picture`} title=${t`Picture`}
      aria-haspopup="dialog" ...${place(TOOLS.length)} onClick=${() => edit && picture()}>
      <${Icon} name="picture" /></button>`}
  </div>`;
}

/** @param {string} key  A key such as "Shift-k". */
const shortcutOf = (key) => `${APPLE ? "Meta" : "Control"}+${capital(key).replace("-", "+")}`;

/** @param {string} key */
const keysOf = (key) => `${APPLE ? "⌘" : "Ctrl"}+${capital(key).replace("-", "+")}`;

/** @param {string} key */
const capital = (key) => key.replace(/.$/, (last) => last.toUpperCase());

/** @param {KeyboardEvent} event */
function steer(event) {
  const tools = /** @type {HTMLElement[]} */ ([.../** @type {HTMLElement} */ (event.currentTarget).children]);
  const from = tools.findIndex((tool) => tool === event.target);
  const to = { ArrowLeft: from - 1, ArrowRight: from + 1, Home: 0, End: tools.length - 1 }[event.key];
  if (to === undefined || from < 0) return;
  event.preventDefault();
  tools[(to + tools.length) % tools.length].focus();
}
