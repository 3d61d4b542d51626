/** A field: its label, hint and error message, which are linked to its input by ids. */

import { html } from "../vendor/preact.js";

/**
 * @typedef {object} InputProps
 * @property {string} id
 * @property {string} label
 * @property {import("../model.js").Attribute} attribute
 * @property {any} value
 * @property {(value: any) => void} change
 * @property {boolean} isNew  Whether the document is new and not yet saved.
 * @property {Record<string, string>} aria  The attributes that link the input to its hint and error message.
 */

/**
 * @typedef {object} Nesting  The props of inputs that contain further fields.
 * @property {string[]} path
 * @property {Record<string, string>} errors  Error messages by the path of the attribute, joined with dots.
 * @property {any} field  The component that displays the field for an attribute.
 * @property {boolean} isNew
 */

/**
 * Return the id of an attribute's input. Related elements have the same id with a suffix such as `-label`, which can't
 * be the id of a nested attribute.
 * @param {string[]} path
 */
export const idOf = (path) => `field-${path.join("--")}`;

/**
 * Return the attributes that link an input to its hint and error message.
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
 * The frame of a field. `group` is set if the field has several inputs, because a label can't be linked to several.
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
