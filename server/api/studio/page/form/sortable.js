/** A list whose items can be moved by dragging their handles, or with the arrow keys on the handles, and removed. */

import { Icon } from "../icons.js";
import { t } from "../language.js";
import { showNotice, useMessage } from "../store/messages.js";
import { html, useLayoutEffect, useRef, useState } from "../vendor/preact.js";

/**
 * @typedef {object} Props
 * @property {string} id
 * @property {any[]} items
 * @property {(item: any, index: number) => string | number} keyOf
 * @property {(item: any, index: number) => string} nameOf
 * @property {(items: any[]) => void} change
 * @property {(item: any, index: number) => any} children
 * @property {string} [kind]  A CSS class for the list.
 */

/** @param {Props} props */
export function Sortable({ id, items, keyOf, nameOf, change, children, kind = "" }) {
  const dragged = useRef(-1);
  const [over, setOver] = useState(-1);
  const focus = useRef("");
  const place = `sortable ${id}`;
  const message = useMessage(place);
  // At once: the next key may come before a later effect, and moving the element has taken the focus from it.
  useLayoutEffect(() => {
    if (focus.current) document.getElementById(focus.current)?.focus();
    focus.current = "";
  });
  const move = (/** @type {number} */ from, /** @type {number} */ to) => {
    if (from === to || to < 0 || to >= items.length) return;
    const moved = items.toSpliced(from, 1).toSpliced(to, 0, items[from]);
    focus.current = `${id}-move-${keyOf(items[from], from)}`;
    showNotice(place, t`${nameOf(items[from], from)} is now ${to + 1} of ${items.length}`);
    change(moved);
  };
  const drop = (/** @type {DragEvent} */ event, /** @type {number} */ to) => {
    if (dragged.current < 0) return;
    event.preventDefault();
    event.stopPropagation();
    move(dragged.current, to);
    dragged.current = -1;
    setOver(-1);
  };
  return html`<ol class=${`sortable ${kind}`}>
      ${items.map((item, index) => {
        const key = keyOf(item, index);
        const press = (/** @type {KeyboardEvent} */ event) => {
          const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
          if (!step) return;
          event.preventDefault();
          move(index, index + step);
        };
        return html`<li class=${`sortable-item ${over === index ? "is-over" : ""}`} key=${key}
          onDragOver=${(/** @type {DragEvent} */ e) => {
            if (dragged.current < 0) return;
            e.preventDefault();
            setOver(index);
          }} onDrop=${(/** @type {DragEvent} */ e) => drop(e, index)}>
          <button class="icon-button handle" type="button" id=${`${id}-move-${key}`} draggable="true" onKeyDown=${press}
            aria-label=${t`Move ${nameOf(item, index)}, with the arrow keys`} title=${t`Drag, or use the arrow keys`}
            onDragStart=${() => (dragged.current = index)} onDragEnd=${() => setOver((dragged.current = -1))}>
            <${Icon} name="grip" />
          </button>
          <div class="sortable-body">${children(item, index)}</div>
          <button class="icon-button" type="button" aria-label=${t`Remove ${nameOf(item, index)}`}
            onClick=${() => change(items.toSpliced(index, 1))}><${Icon} name="close" /></button>
        </li>`;
      })}
    </ol>
    <p class="unseen" role="status">${message.text}</p>`;
}
