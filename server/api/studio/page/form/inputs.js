/** The inputs for attributes with a single value. Each receives the value and reports changes. */

import { SourceInput, rowsOf, typedInto } from "../editor/source-input.js";
import { faultOf } from "../json-fault.js";
import { parseJson, writeJson } from "../json.js";
import { t } from "../language.js";
import { html, useState } from "../vendor/preact.js";
import { fromLocal, toLocal, wholeTime } from "./times.js";
import { same, Unparsed } from "./values.js";

/** @typedef {import("./field.js").InputProps} InputProps */
/** @typedef {(text: string) => any} Parse */

/** @param {Event} event */
const typed = (event) => /** @type {HTMLInputElement} */ (event.target).value;

/** The input for a single line of text. @param {InputProps & {type?: string, autocomplete?: string}} props */
export function Line({ id, value, change, aria, type = "text", autocomplete }) {
  return html`<input class="input" id=${id} type=${type} value=${value ?? ""} autocomplete=${autocomplete} ...${aria}
    onInput=${(/** @type {Event} */ e) => change(typed(e) || null)} />`;
}

/** @param {InputProps} props */
export const Email = (props) => html`<${Line} ...${props} type="email" />`;

/** @param {InputProps} props */
export const Password = (props) => html`<${Line} ...${props} type="password" autocomplete="new-password" />`;

/** The input for several lines of text. @param {InputProps} props */
export function Lines({ id, value, change, aria }) {
  const text = String(value ?? "");
  const set = (/** @type {Event} */ event) => change(typedInto(text, event) || null);
  return html`<textarea class="input lines" id=${id} value=${text} rows=${rowsOf(text)} ...${aria}
    onInput=${set} />`;
}

/**
 * Return the text to display for a value. While the typed text represents the value, it is displayed unchanged.
 * @param {any} value
 * @param {(value: any) => string} show
 * @param {Parse} parse
 * @returns {[string, (text: string) => any]}
 */
function useText(value, show, parse) {
  const [last, set] = useState(/** @type {{text: string, value: any} | null} */ (null));
  const shown = value instanceof Unparsed ? value.text : last && same(value, last.value) ? last.text : show(value);
  const read = (/** @type {string} */ text) => {
    const made = parse(text);
    set({ text, value: made });
    return made;
  };
  return [shown, read];
}

/** @type {Record<string, {form: RegExp, why: string, read: (text: string) => any}>} */
const NUMBERS = {
  integer: { form: /^[-+]?\d+$/, why: t`must be a whole number`, read: Number },
  biginteger: { form: /^[-+]?\d+$/, why: t`must be a whole number`, read: (text) => text.replace(/^\+/, "") },
  float: { form: /^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i, why: t`must be a number`, read: Number },
  decimal: { form: /^[-+]?(\d+\.?\d*|\.\d+)$/, why: t`must be a number`, read: (text) => exact(text) },
};

/**
 * Return a number, or its text if JavaScript can't represent the number exactly.
 * @param {string} text
 */
function exact(text) {
  return String(Number(text)) === text ? Number(text) : text;
}

/** @param {InputProps} props */
export function Numeric({ id, attribute, value, change, aria }) {
  const { form, why, read } = NUMBERS[attribute.type];
  const [text, parse] = useText(value, (shown) => String(shown ?? ""), (written) => {
    const trimmed = written.trim();
    return trimmed === "" ? null : form.test(trimmed) ? read(trimmed) : new Unparsed(written, why);
  });
  return html`<input class="input is-short" id=${id} inputmode="decimal" value=${text} autocomplete="off" ...${aria}
    onInput=${(/** @type {Event} */ e) => change(parse(typed(e)))} />`;
}

/** The input for any JSON value, as source text. @param {InputProps} props */
export function Json({ id, attribute, value, change, aria }) {
  const list = attribute.type !== "json";
  const [text, parse] = useText(value, (shown) => (shown == null ? "" : writeJson(shown, 2)), (written) => {
    if (written.trim() === "") return null;
    try {
      const made = parseJson(written);
      return list && !Array.isArray(made) ? new Unparsed(written, t`must be a list: [ … ]`) : made;
    } catch {
      return new Unparsed(written, t`must be JSON: ${faultOf(written)}`);
    }
  });
  const set = (/** @type {string} */ written) => change(parse(written));
  return html`<${SourceInput} ...${{ id, aria, text }} language="json" change=${set} />`;
}

/** @type {Record<string, {type: string, step?: string, show: (value: string) => string, read: Parse}>} */
const TIMES = {
  date: { type: "date", show: (value) => value, read: (text) => text },
  time: { type: "time", step: "1", show: (value) => value.replace(/\.000$/, ""), read: wholeTime },
  datetime: { type: "datetime-local", show: toLocal, read: fromLocal },
};

/** @param {InputProps} props */
export function Temporal({ id, attribute, value, change, aria }) {
  const kind = TIMES[attribute.type] ?? TIMES.datetime;
  const set = (/** @type {Event} */ event) => {
    const input = /** @type {HTMLInputElement} */ (event.target);
    if (input.validity.badInput) change(new Unparsed("", t`is not complete`));
    else change(input.value ? kind.read(input.value) : null);
  };
  return html`<input class="input is-short" id=${id} type=${kind.type} step=${kind.step} ...${aria} onInput=${set}
    value=${typeof value === "string" ? kind.show(value) : ""} />`;
}

/** The input for an enumeration. @param {InputProps} props */
export function Choice({ id, attribute, value, change, aria }) {
  const values = attribute.enum ?? [];
  const options = value && !values.includes(value) ? [...values, value] : values;
  return html`<select class="input is-short" id=${id} value=${value ?? ""} ...${aria}
    onChange=${(/** @type {Event} */ e) => change(typed(e) || null)}>
    <option value="">${attribute.required ? t`Choose…` : t`None`}</option>
    ${options.map((option) => html`<option value=${option} key=${option}>${option}</option>`)}
  </select>`;
}

/** @param {InputProps} props */
export function YesNo({ id, attribute, value, change, aria }) {
  const options = [[t`Yes`, true], [t`No`, false], ...(attribute.required ? [] : [[t`Not set`, null]])];
  return html`<div class="segments" ...${aria} role="radiogroup" aria-labelledby=${`${id}-label`}>
    ${options.map(([label, option]) => html`<label class="segment" key=${label}>
      <input type="radio" name=${id} checked=${(value ?? null) === option} onChange=${() => change(option)} />
      <span>${label}</span>
    </label>`)}
  </div>`;
}
