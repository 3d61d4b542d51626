/** The input for a relation: documents are found while typing, put in an order, and removed. */

import { addressTo } from "../addresses.js";
import { ask } from "../api.js";
import { useStudio } from "../context.js";
import { Icon } from "../icons.js";
import { t } from "../language.js";
import { inSentence } from "../text.js";
import { Link } from "../router.js";
import { keyOf, useRequest } from "../store/requests.js";
import { html, useRef, useState } from "../vendor/preact.js";
import { isList } from "./shape.js";
import { Sortable } from "./sortable.js";

const MOST = 8; // documents that a search shows
const TYPING_MS = 150; // the pause in typing after which documents are searched

/** @typedef {{documentId: string, __title: string, __type?: string}} Target */

/** @param {import("./field.js").InputProps} props */
export function Relation({ id, attribute, value, change, aria }) {
  const { model } = useStudio();
  const many = isList(attribute);
  const targets = many ? (value ?? []) : value ? [value] : [];
  const type = model.types.find(({ uid }) => uid === attribute.target);
  const name = (/** @type {Target} */ target) => target.__title;
  const shown = (/** @type {Target} */ target) => {
    const to = type && addressTo("document", { type: type.name, id: target.documentId });
    return to ? html`<${Link} to=${to}>${target.__title}<//>` : target.__title;
  };
  const add = (/** @type {Target} */ target) => change(many ? [...targets, target] : target);
  return html`<div class="relation">
    ${many
      ? html`<${Sortable} id=${id} items=${targets} nameOf=${name} change=${change} kind="is-targets"
          keyOf=${(/** @type {Target} */ t) => t.documentId}>${shown}<//>`
      : targets.map((/** @type {Target} */ target) => html`<p class="target" key=${target.documentId}>
          <span class="target-name">${shown(target)}</span>
          <button class="icon-button" type="button" aria-label=${t`Remove ${target.__title}`}
            onClick=${() => change(null)}><${Icon} name="close" /></button>
        </p>`)}
    ${type && html`<${Search} ...${{ id, type, aria, add, chosen: targets }} />`}
  </div>`;
}

/**
 * A combobox for finding documents: the arrow keys select a document, Enter adds it, and Escape closes the list.
 * @param {{id: string, type: import("../model.js").Type, aria: any, add: (target: Target) => void,
 *   chosen: Target[]}} props
 */
export function Search({ id, type, aria, add, chosen }) {
  const { model } = useStudio();
  const [text, setText] = useState("");
  const [open, setOpen] = useState(false);
  const [active, setActive] = useState(0);
  const candidates = useCandidates(model, type, text, open);
  const wanted = text.trim().toLowerCase();
  const options = candidates.filter(({ documentId, __title: title }) => {
    // A document that matched an earlier text but not this one must not be added by Enter.
    return title.toLowerCase().includes(wanted) && !chosen.some((target) => target.documentId === documentId);
  });
  const take = (/** @type {Target | undefined} */ target) => {
    if (!target) return;
    add(target);
    setText("");
    setOpen(false);
  };
  const press = (/** @type {KeyboardEvent} */ event) => {
    const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (step) {
      event.preventDefault();
      setOpen(true);
      setActive(Math.max(0, Math.min(options.length - 1, active + (open ? step : 0))));
    } else if (event.key === "Enter" && open) {
      event.preventDefault();
      take(options[active]);
    } else if (event.key === "Escape") setOpen(false);
  };
  const shown = open && options.length > 0;
  return html`<div class="search">
    <input class="input" id=${id} role="combobox" aria-expanded=${shown} aria-controls=${`${id}-found`}
      aria-autocomplete="list" aria-activedescendant=${shown ? `${id}-found-${active}` : undefined} ...${aria}
      autocomplete="off" placeholder=${t`Find ${inSentence(type.plural)}`} value=${text} onKeyDown=${press}
      onFocus=${() => setOpen(true)} onBlur=${() => setOpen(false)}
      onInput=${(/** @type {Event} */ e) => {
        setText(/** @type {HTMLInputElement} */ (e.target).value);
        setActive(0);
        setOpen(true);
      }} />
    <ul class="search-found" id=${`${id}-found`} role="listbox" aria-label=${type.plural} hidden=${!shown}>
      ${options.map((target, index) => html`<li key=${target.documentId} id=${`${id}-found-${index}`} role="option"
        class="search-option" aria-selected=${index === active}
        onMouseDown=${(/** @type {Event} */ e) => e.preventDefault()} onClick=${() => take(target)}>
        ${target.__title}
      </li>`)}
    </ul>
  </div>`;
}

/** @param {any} document @param {string} name @returns {Target} */
function targetOf(document, name) {
  return { documentId: document.documentId, __title: String(document[name] || document.documentId) };
}

/**
 * Return the documents whose titles contain a text.
 * @param {import("../model.js").Model} model
 * @param {import("../model.js").Type} type
 * @param {string} text
 * @param {boolean} open
 * @returns {Target[]}
 */
function useCandidates(model, type, text, open) {
  const name = type.title ?? "documentId";
  const query = {
    ...model.statusParam(type),
    fields: [name],
    sort: type.title ?? undefined,
    filters: text.trim() ? { [name]: { $containsi: text.trim() } } : undefined,
    pagination: type.single ? undefined : { pageSize: MOST },
  };
  const load = async (/** @type {AbortSignal} */ signal) => {
    const { data } = await ask(type.path, { query, signal });
    return [data].flat().map((one) => targetOf(one, name));
  };
  const key = open ? keyOf("candidates", type, text) : "";
  const { value } = useRequest(key, load, { delayMs: text ? TYPING_MS : 0 });
  const latest = useRef(/** @type {Target[]} */ ([]));
  latest.current = value ?? latest.current; // What was found stays while it is closed, and after a failure.
  return latest.current;
}
