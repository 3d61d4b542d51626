/** The field for one setting. */

import { t } from "../language.js";
import { html } from "../vendor/preact.js";

/**
 * @param {{field: import("./setting-values.js").Field, text: string, wrong: string, disabled: boolean,
 *   change: (text: string) => void}} props
 */
export function SettingField({ field, text, wrong, disabled, change }) {
  const { key, label, hint, choices, setting, isFixed } = field;
  const id = `setting-${key}`;
  const described = `${id}-hint${wrong ? ` ${id}-error` : ""}`;
  const common = { id, value: text, disabled: disabled || isFixed, "aria-describedby": described };
  const otherwise = setting.default || t`none`;
  return html`<p class="field setting">
    <label class="field-label" for=${id}>${label}</label>
    ${choices.length
      ? html`<select class="select" ...${common} aria-invalid=${wrong ? "true" : undefined}
          onChange=${(/** @type {any} */ event) => change(event.currentTarget.value)}>
          <option value="">${t`Default (${otherwise})`}</option>
          ${choices.map((choice) => html`<option key=${choice} value=${choice}>${choice}</option>`)}
        </select>`
      : html`<input class="input" ...${common} placeholder=${otherwise} aria-invalid=${wrong ? "true" : undefined}
          autocomplete="off" spellcheck="false"
          onInput=${(/** @type {any} */ event) => change(event.currentTarget.value)} />`}
    <span class="hint" id=${`${id}-hint`}>${isFixed ? t`Has more options in site.yaml; change it there.` : hint}</span>
    ${wrong && html`<span class="field-error" id=${`${id}-error`}>${wrong}</span>`}
  </p>`;
}
