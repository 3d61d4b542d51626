/** The editor for `blocks`, with its toolbar and dialogs. It is loaded if a form has an attribute of this type. */

import { useStudio } from "../context.js";
import { same } from "../form/values.js";
import { html, useEffect, useLayoutEffect, useRef, useState } from "../vendor/preact.js";
import { command, insertImage } from "./commands.js";
import { blocksOf } from "./convert.js";
import { Details } from "./details.js";
import { LinkDialog } from "./link-dialog.js";
import { insertLink, linkAt, mayLink } from "./links.js";
import { PictureDialog } from "./picture-dialog.js";
import { Toolbar } from "./toolbar.js";
import { createView, isReadOnly, showValue } from "./view.js";

/** @typedef {import("../vendor/prosemirror.js").EditorView} EditorView */

/** @param {import("../form/field.js").InputProps & {source: () => void}} props */
export function Editor({ id, value, change, aria, source }) {
  const { model } = useStudio();
  const { host, view } = useView({ id, value, change, aria }, () => open("link"));
  const [dialog, open] = useState("");
  const close = () => open("");
  const wasOpen = useRef(false);
  // This runs after the dialog has returned the focus, but before the next key press, which would otherwise be lost.
  useLayoutEffect(() => {
    if (wasOpen.current && !dialog) view?.focus();
    wasOpen.current = dialog !== "";
  }, [dialog]);
  const run = (/** @type {(tr: any) => boolean} */ does) => view && command(does)(view.state, view.dispatch);
  const dialogs = {
    link: () => html`<${LinkDialog} id=${id} link=${view && linkAt(view.state)} close=${close}
      take=${(/** @type {string} */ url, /** @type {string} */ text) => run(insertLink(url, text))} />`,
    picture: () => html`<${PictureDialog} id=${id} close=${close}
      take=${(/** @type {object} */ image) => run(insertImage(image))} />`,
  }[dialog];
  return html`<div class="blocks">
    ${view && html`<${Toolbar} ...${{ id, view, source }} link=${() => open("link")}
      picture=${model.allows("upload", "find") ? () => open("picture") : undefined} />`}
    <div class="blocks-host" ref=${host}></div>
    ${view && html`<${Details} id=${id} view=${view} link=${() => open("link")} />`}
    ${dialogs?.()}
  </div>`;
}

/**
 * Return an editor view for a value. The component is rendered again after each change in the view.
 * @param {Pick<import("../form/field.js").InputProps, "id" | "value" | "change" | "aria">} props
 * @param {() => void} link
 */
function useView({ id, value, change, aria }, link) {
  const host = useRef(/** @type {HTMLElement | null} */ (null));
  const [view, setView] = useState(/** @type {EditorView | null} */ (null));
  const [, again] = useState(0);
  const told = useRef(value);
  const underWay = useRef(new Set()); // what was told, and has not come back as the value yet
  const latest = useRef({ change, aria });
  latest.current = { change, aria };
  // This must run before the user can type: a later effect would revert what was typed.
  useLayoutEffect(() => {
    const place = /** @type {HTMLElement} */ (host.current);
    const made = createView(place, {
      value,
      attributes: () => ({
        id,
        class: "blocks-text",
        role: "textbox",
        tabindex: "0",
        "aria-multiline": "true",
        "aria-labelledby": `${id}-label`,
        ...(isReadOnly(place) ? { "aria-readonly": "true" } : {}),
        ...latest.current.aria,
      }),
      moved: () => again((count) => count + 1),
      changed: (document) => {
        told.current = blocksOf(document, value);
        underWay.current.add(told.current);
        latest.current.change(told.current);
      },
      leave: () => /** @type {HTMLElement} */ (document.querySelector(`#${id}-toolbar [tabindex="0"]`))?.focus(),
      link: () => mayLink(made.state) && link(),
    });
    const label = document.getElementById(`${id}-label`);
    const focus = () => made.focus(); // which a browser does for inputs of its own alone
    label?.addEventListener("click", focus);
    setView(made);
    return () => {
      label?.removeEventListener("click", focus);
      made.destroy();
    };
  }, []);
  useLayoutEffect(() => {
    if (value === told.current) underWay.current.clear();
    if (!view || value === told.current || underWay.current.has(value)) return;
    const other = !same(value, told.current);
    told.current = value;
    if (other) showValue(view, value);
  }, [view, value]);
  useEffect(() => view?.setProps({}), [view, Object.values(aria).join()]);
  return { host, view };
}
