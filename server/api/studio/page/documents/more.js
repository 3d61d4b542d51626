/** The menu of a form, with actions that are rarely used. It contains only actions that are possible and permitted. */

import { addressTo } from "../addresses.js";
import { ApiError } from "../api.js";
import { Question } from "../dialog.js";
import { t } from "../language.js";
import { navigate } from "../router.js";
import { FORM, offerUndo, showError } from "../store/messages.js";
import { reloadContent } from "../store/requests.js";
import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { localeParam } from "./beginning.js";
import { act, remove } from "./writing.js";

/**
 * @param {{subject: import("./form.js").Subject, editing: any, status?: any, changed: string[],
 *   rights: import("./rights.js").Rights}} props
 */
export function More({ subject, editing, status, changed, rights }) {
  const { type, id } = subject;
  const [asking, setAsking] = useState(false);
  const address = { type, id, locale: localeParam(subject), draft: subject.drafts };
  const doing = async (/** @type {() => Promise<void>} */ what) => {
    try {
      await what();
      reloadContent();
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      showError(FORM, error.message);
    }
  };
  const drop = () =>
    doing(async () => {
      const undo = await remove(address);
      offerUndo(t`Document deleted`, undo ? [undo] : []);
      editing.update({ base: editing.state.values });
      navigate(addressTo("list", { type: type.name }), { replace: true, unguarded: true });
    });
  const unpublish = () =>
    doing(async () => {
      const undo = await act(address, "unpublish", "");
      offerUndo(t`Unpublished`, undo ? [undo] : []);
      await editing.hear();
    });
  const discard = () =>
    doing(async () => {
      setAsking(false);
      const undo = await act(address, "discard", editing.state.version?.etag ?? "");
      offerUndo(t`Draft discarded`, undo ? [undo] : []);
      await editing.load();
    });
  const copy = () => navigate(addressTo("create", { type: type.name }, { from: id }));
  const items = [
    { label: t`Discard draft`, offered: status === "modified" && rights.write,
      act: () => (changed.length ? setAsking(true) : discard()) },
    { label: t`Unpublish`, offered: status && status !== "draft" && rights.publish, act: unpublish },
    { label: t`Duplicate`, offered: rights.create, act: copy },
    { label: t`Delete`, offered: rights.remove, act: drop },
  ].filter(({ offered }) => offered);
  if (!items.length) return null;
  return html`<${Menu} items=${items} disabled=${Boolean(editing.state.busy)} />
    ${asking && html`<${Question} title=${t`Discard the draft?`} label=${t`Discard`}
      text=${t`Unsaved changes are discarded too. This can't be undone.`}
      confirm=${discard} close=${() => setAsking(false)} />`}`;
}

/**
 * A button that opens a menu of buttons. Escape closes the menu and returns the focus to the button.
 * @param {{items: {label: string, act: () => void}[], disabled: boolean}} props
 */
function Menu({ items, disabled }) {
  const [open, setOpen] = useState(false);
  const place = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => {
    if (!open) return;
    const outside = (/** @type {Event} */ event) => {
      if (!place.current?.contains(/** @type {Node} */ (event.target))) setOpen(false);
    };
    addEventListener("pointerdown", outside);
    addEventListener("focusin", outside);
    return () => {
      removeEventListener("pointerdown", outside);
      removeEventListener("focusin", outside);
    };
  }, [open]);
  /** @param {KeyboardEvent} event */
  const leave = (event) => {
    if (event.key !== "Escape" || !open) return;
    event.preventDefault();
    setOpen(false);
    place.current?.querySelector("button")?.focus();
  };
  const choose = (/** @type {() => void} */ act) => {
    setOpen(false);
    place.current?.querySelector("button")?.focus();
    act();
  };
  return html`<div class="menu" ref=${place} onKeyDown=${leave}>
    <button class="button quiet" type="button" aria-expanded=${open} aria-controls="form-menu" disabled=${disabled}
      onClick=${() => setOpen(!open)}>${t`More`}</button>
    <div class="menu-items" id="form-menu" hidden=${!open}>
      ${items.map(({ label, act }) => html`<button class="button quiet" type="button" key=${label}
        onClick=${() => choose(act)}>${label}</button>`)}
    </div>
  </div>`;
}
