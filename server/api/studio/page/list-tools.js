/** What is above a list: search as you type, locale, status, filters, columns. */

import { ColumnPanel } from "./column-panel.js";
import { useStudio } from "./context.js";
import { FilterPanel, Filters } from "./filters.js";
import { Icon } from "./icons.js";
import { html, useEffect, useLayoutEffect, useRef, useState } from "./vendor/preact.js";

const TYPING_MS = 200; // as long as somebody types on

/**
 * @typedef {import("./list-state.js").ListState} ListState
 * @typedef {(changes: Partial<ListState>, options?: {replace?: boolean}) => void} ChangeList
 */

/**
 * @param {{type: import("./model.js").Type, state: ListState, change: ChangeList,
 *   columns: import("./columns.js").Column[], chosen: string[], choose: (names: string[] | null) => void}} props
 */
export function ListTools({ type, state, change, columns, chosen, choose }) {
  const { model } = useStudio();
  const [open, setOpen] = useState("");
  const locales = type.localized && model.locales.length > 1 ? model.locales : [];
  /** @param {string} name */
  const toggle = (name) => setOpen(open === name ? "" : name);
  return html`<div class="list-tools" role="search">
    <div class="list-row">
      <${SearchField} label=${`Search ${type.plural}`} text=${state.q} change=${change} />
      ${locales.length > 0 && html`<select class="select" aria-label="Language"
        value=${state.locale || model.defaultLocale}
        onChange=${(/** @type {any} */ e) => change({ locale: plain(e.target.value, model.defaultLocale) })}>
        ${locales.map((locale) => html`<option key=${locale.code} value=${locale.code}>${locale.name}</option>`)}
      </select>`}
      ${model.seesDrafts(type) && html`<select class="select" aria-label="Status" value=${state.status}
        onChange=${(/** @type {any} */ e) => change({ status: e.target.value })}>
        <option value="">Any status</option>
        <option value="published">Published</option>
        <option value="modified">Modified</option>
        <option value="draft">Draft</option>
      </select>`}
      <${Opener} name="filter" ...${{ open, toggle }}>Filter<//>
      <${Opener} name="columns" ...${{ open, toggle }}>Columns<//>
    </div>
    <${Panel} name="filter" ...${{ open, setOpen }}><${FilterPanel} ...${{ type, state, change }} /><//>
    <${Panel} name="columns" ...${{ open, setOpen }}><${ColumnPanel} ...${{ columns, chosen, choose }} /><//>
    <${Filters} ...${{ type, state, change }} />
  </div>`;
}

/** @param {string} value @param {string} usual */
const plain = (value, usual) => (value === usual ? "" : value);

/** @param {{name: string, open: string, toggle: (name: string) => void, children?: any}} props */
function Opener({ name, open, toggle, children }) {
  return html`<button class="button" type="button" id=${`open-${name}`} aria-expanded=${open === name}
    aria-controls=${`panel-${name}`} onClick=${() => toggle(name)}>${children}</button>`;
}

/**
 * What a button opens; Escape closes it, and leads back to the button.
 * @param {{name: string, open: string, setOpen: (name: string) => void, children?: any}} props
 */
function Panel({ name, open, setOpen, children }) {
  const place = useRef(/** @type {HTMLElement | null} */ (null));
  const shown = open === name;
  useLayoutEffect(() => {
    if (shown) /** @type {HTMLElement | null} */ (place.current?.querySelector("select, input"))?.focus();
  }, [shown]);
  /** @param {KeyboardEvent} event */
  const leave = (event) => {
    if (event.key !== "Escape") return;
    setOpen("");
    document.getElementById(`open-${name}`)?.focus();
  };
  return html`<div class="list-panel" id=${`panel-${name}`} hidden=${!shown} ref=${place} onKeyDown=${leave}>
    ${shown && children}
  </div>`;
}

/**
 * What is typed is searched for when the typing pauses. All of it is one step of the browser's history.
 * @param {{label: string, text: string, change: ChangeList}} props
 */
function SearchField({ label, text, change }) {
  const [typed, set] = useState(text);
  const sent = useRef(text);
  const latest = useRef(change);
  latest.current = change;
  useEffect(() => {
    if (text !== sent.current) set(text); // by Back, or by a link
    sent.current = text;
  }, [text]);
  useEffect(() => {
    if (typed.trim() === sent.current) return undefined;
    const timer = setTimeout(() => {
      const first = sent.current === "";
      sent.current = typed.trim();
      latest.current({ q: typed.trim() }, { replace: !first });
    }, TYPING_MS);
    return () => clearTimeout(timer);
  }, [typed]);
  return html`<label class="search">
    <${Icon} name="search" />
    <input class="search-input" type="search" aria-label=${label} placeholder="Search" autocomplete="off" value=${typed}
      onInput=${(/** @type {any} */ event) => set(event.target.value)} />
  </label>`;
}
