/** Labelled inputs of the dialogs. Each one edits the value with its name, and shows what is `wrong` with it. */

import { t } from "../language.js";
import { html, useEffect } from "../vendor/preact.js";

/**
 * @typedef {Record<string, any>} Values
 * @typedef {{values: Values, set: (part: Values) => void, name: string, label: string, hint?: string,
 *   [more: string]: any}} Props
 */

/** @param {Props} props */
export function Input({ values, set, name, label, hint = "", wrong = "", lines = false, ...more }) {
  const id = `types-${name}`;
  const common = {
    id,
    value: values[name] ?? "",
    autocomplete: "off",
    spellcheck: false,
    "aria-describedby": hint ? `${id}-hint` : undefined,
    onInput: (/** @type {any} */ event) => set({ [name]: event.currentTarget.value }),
    ref: (/** @type {HTMLInputElement | null} */ input) => input?.setCustomValidity(wrong),
  };
  return html`<p class="field">
    <label class="field-label" for=${id}>${label}</label>
    ${lines ? html`<textarea class="input" rows="4" ...${common} ...${more} />`
      : html`<input class="input" ...${common} ...${more} />`}
    ${hint && html`<span class="hint" id=${`${id}-hint`}>${hint}</span>`}
  </p>`;
}

/**
 * `labels` are the texts of the choices.
 * @param {Props & {choices: string[], labels?: Record<string, string>}} props
 */
export function Choice({ values, set, name, label, choices, labels = {} }) {
  const id = `types-${name}`;
  const value = values[name] ?? choices[0];
  useEffect(() => {
    if (values[name] === undefined && choices.length) set({ [name]: choices[0] });
  });
  return html`<p class="field">
    <label class="field-label" for=${id}>${label}</label>
    <select class="select" id=${id} value=${value} required=${!choices.includes("")}
      onChange=${(/** @type {any} */ event) => set({ [name]: event.currentTarget.value })}>
      ${choices.map((choice) => html`<option key=${choice} value=${choice}>
        ${labels[choice] || choice || t`None`}</option>`)}
    </select>
  </p>`;
}

/** @param {Props} props */
export function Flag({ values, set, name, label }) {
  return html`<label class="types-check"><input type="checkbox" checked=${values[name] === true}
    onChange=${(/** @type {any} */ event) => set({ [name]: event.currentTarget.checked })} /> ${label}</label>`;
}
