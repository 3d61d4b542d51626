/** The controls above a list: search, choices, filters and columns. */

import { Icon } from "../icons.js";
import { t } from "../language.js";
import { html, useEffect, useLayoutEffect, useRef, useState } from "../vendor/preact.js";
import { ColumnPanel } from "./column-panel.js";
import { FilterPanel, Filters } from "./filters.js";

const TYPING_MS = 200; // the pause in typing after which is searched

/**
 * @typedef {import("./state.js").ListState} ListState
 * @typedef {import("./resource.js").Resource} Resource
 * @typedef {(changes: Partial<ListState>, options?: {replace?: boolean}) => void} ChangeList
 */

/**
 * @param {{resource: Resource, state: ListState, change: ChangeList, chosen: string[],
 *   choose: (names: string[] | null) => void}} props
 */
export function ListTools({ resource, state, change, chosen, choose }) {
  const { choices, columns, filters, hasColumns = () => true } = resource;
  const [open, setOpen] = useState("");
  /** @param {string} name */
  const toggle = (name) => setOpen(open === name ? "" : name);
  return html`<div class="list-tools" role="search">
    <div class="list-row">
      <${SearchField} label=${t`Search ${resource.heading}`} text=${state.q} change=${change} />
      ${choices.map((choice) => html`<${ChoiceField} key=${choice.name} ...${{ choice, state, change }} />`)}
      ${filters.length > 0 && html`<${Opener} name="filter" ...${{ open, toggle }}>${t`Filter`}<//>`}
      ${columns.length > 0 && hasColumns(state) && html`<${Opener} name="columns" ...${{ open, toggle }}>
        ${t`Columns`}<//>`}
    </div>
    <${Panel} name="filter" ...${{ open, setOpen }}><${FilterPanel} ...${{ filters, state, change }} /><//>
    <${Panel} name="columns" ...${{ open, setOpen }}><${ColumnPanel} ...${{ columns, chosen, choose }} /><//>
    <${Filters} ...${{ filters, state, change }} />
  </div>`;
}

/**
 * @param {{choice: import("./resource.js").Choice, state: ListState, change: ChangeList}} props
 */
function ChoiceField({ choice: { name, label, usual, options, useOptions = () => options }, state, change }) {
  const shown = useOptions(state.choices[name]);
  const choose = (/** @type {any} */ { target: { value } }) => {
    change({ choices: { ...state.choices, [name]: value === usual ? "" : value } });
  };
  return html`<select class="select" aria-label=${label} value=${state.choices[name] || usual} onChange=${choose}>
    ${shown.map(({ value, label: text }) => html`<option key=${value} value=${value}>${text}</option>`)}
  </select>`;
}

/** @param {{name: string, open: string, toggle: (name: string) => void, children?: any}} props */
function Opener({ name, open, toggle, children }) {
  return html`<button class="button" type="button" id=${`open-${name}`} aria-expanded=${open === name}
    aria-controls=${`panel-${name}`} onClick=${() => toggle(name)}>${children}</button>`;
}

/**
 * The panel that a button opens. Escape closes it and returns the focus to the button.
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
 * The search field. It searches when the user stops typing. The whole search is a single step in the browser's history.
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
    <input class="search-input" type="search" aria-label=${label} placeholder=${t`Search`} autocomplete="off"
      value=${typed}
      onInput=${(/** @type {any} */ event) => set(event.target.value)} />
  </label>`;
}
