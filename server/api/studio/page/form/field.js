/** A field: its label, its hint and what is wrong with it, bound to its input by ids. */

import { html } from "../vendor/preact.js";

/**
 * @typedef {object} InputProps
 * @property {string} id
 * @property {string} label
 * @property {import("../model.js").Attribute} attribute
 * @property {any} value
 * @property {(value: any) => void} change
 * @property {boolean} isNew  Whether the document is not there yet.
 * @property {Record<string, string>} aria  What binds the input to its hint and error.
 */

/**
 * @typedef {object} Nesting  What inputs are given that have fields within.
 * @property {string[]} path
 * @property {Record<string, string>} errors  By the paths of attributes, joined with dots.
 * @property {any} field  The component that shows an attribute.
 * @property {boolean} isNew
 */

/**
 * The id of the input of an attribute. What belongs to it has the same id with `-label` and the like behind it, which
 * is no id of an attribute within.
 * @param {string[]} path
 */
export const idOf = (path) => `field-${path.join("--")}`;

/**
 * What an input says of its hint and error.
 * @param {string} id
 * @param {string} hint
 * @param {string} error
 * @param {boolean} [required]
 */
export function ariaOf(id, hint, error, required) {
  const told = [hint && `${id}-hint`, error && `${id}-error`].filter(Boolean).join(" ");
  const needed = required ? { "aria-required": "true" } : {};
  return { ...needed, ...(told ? { "aria-describedby": told } : {}), ...(error ? { "aria-invalid": "true" } : {}) };
}

/**
 * The frame of a field. `group` for one of several inputs, which a label can't be bound to.
 * @param {{id: string, label: string, hint?: string, error?: string, required?: boolean, changed?: boolean,
 *   group?: boolean, aside?: any, below?: any, children?: any, path?: string}} props
 */
export function Field({ id, label, hint, error, required, changed, group, aside, below, children, path }) {
  const states = [changed && "is-changed", error && "is-wrong", required && "is-required"].filter(Boolean);
  return html`<div class=${["form-field", ...states].join(" ")} data-field=${path}
    role=${group ? "group" : undefined} aria-labelledby=${group ? `${id}-label` : undefined}
    id=${group ? id : undefined} tabindex=${group ? -1 : undefined}>
    <div class="field-head">
      ${group
        ? html`<span class="field-label" id=${`${id}-label`}>${label}</span>`
        : html`<label class="field-label" for=${id} id=${`${id}-label`}>${label}</label>`}
      ${aside}
    </div>
    ${children}
    ${hint && html`<p class="field-hint" id=${`${id}-hint`}>${hint}</p>`}
    <p class="field-error" id=${`${id}-error`}>${error && sentence(error)}</p>
    ${below}
  </div>`;
}

/** @param {string} text */
const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1);
