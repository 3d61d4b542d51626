/** The filters of a list: the active filters, and a form for adding a filter. */

import { Icon } from "../icons.js";
import { t } from "../language.js";
import { day, timestamp } from "../text.js";
import { html, useState } from "../vendor/preact.js";
import { OPERATORS, conditionOf, takes, valuesOf } from "./operators.js";

/**
 * @typedef {import("./operators.js").Filterable} Filterable
 * @typedef {import("./state.js").Condition} Condition
 * @typedef {{filters: Filterable[], state: import("./state.js").ListState,
 *   change: import("./tools.js").ChangeList}} Props
 */

/**
 * The active filters, each with a button that removes it.
 * @param {Props} props
 */
export function Filters({ filters, state, change }) {
  const { conditions } = state;
  if (!conditions.length) return "";
  /** @param {Condition} gone */
  const remove = (gone) => change({ conditions: conditions.filter((one) => one !== gone) });
  return html`<ul class="filters" aria-label=${t`Filters`}>
    ${conditions.map((condition) => {
      const text = inWords(filters, condition);
      return html`<li class="filter" key=${text}>
        <span>${text}</span>
        <button class="icon-button" type="button" aria-label=${t`Remove the filter: ${text}`}
          onClick=${() => remove(condition)}><${Icon} name="close" /></button>
      </li>`;
    })}
  </ul>`;
}

/** @param {Filterable[]} filters @param {Condition} condition */
function inWords(filters, condition) {
  const { path, operator } = condition;
  const about = filters.find((each) => each.path === path);
  const words = about && OPERATORS[about.kind][operator];
  if (!words) return t`${path}: not available here`;
  const values = takes(operator) === "none" ? [] : valuesOf(condition).map((value) => shown(about, value));
  return `${about.label} ${words} ${values.join(takes(operator) === "two" ? ` ${t`and`} ` : ", ")}`.trim();
}

/** @param {Filterable} about @param {string} value */
function shown({ kind }, value) {
  if (kind === "boolean") return value === "true" ? "yes" : "no";
  if (Number.isNaN(Date.parse(value))) return `“${value}”`;
  if (kind === "date") return day(value);
  return kind === "datetime" ? timestamp(value) : `“${value}”`;
}

/**
 * The form for adding a filter: attribute, operator and value.
 * @param {Props} props
 */
export function FilterPanel({ filters, state, change }) {
  const [about, setAbout] = useState(filters[0]);
  const [operator, setOperator] = useState(Object.keys(OPERATORS[about.kind])[0]);
  /** @param {string} path */
  const pick = (path) => {
    const next = filters.find((each) => each.path === path) ?? filters[0];
    setAbout(next);
    if (!(operator in OPERATORS[next.kind])) setOperator(Object.keys(OPERATORS[next.kind])[0]);
  };
  /** @param {SubmitEvent} event */
  const add = (event) => {
    event.preventDefault();
    const form = /** @type {HTMLFormElement} */ (event.currentTarget);
    const typed = new FormData(form).getAll("value").map(String);
    const listed = takes(operator) === "several" && !about.choices;
    const values = listed ? typed.join().split(",").map((one) => one.trim()).filter(Boolean) : typed;
    if (takes(operator) === "several" && !values.length) return;
    change({ conditions: [...state.conditions, conditionOf(about.path, operator, values)] });
    form.reset();
  };
  const operators = Object.entries(OPERATORS[about.kind]);
  return html`<form class="filter-form" onSubmit=${add}>
    <select class="select" aria-label=${t`Attribute`} value=${about.path}
      onChange=${(/** @type {any} */ event) => pick(event.target.value)}>
      ${filters.map((each) => html`<option key=${each.path} value=${each.path}>${each.label}</option>`)}
    </select>
    <select class="select" aria-label=${t`Condition`} value=${operator}
      onChange=${(/** @type {any} */ event) => setOperator(event.target.value)}>
      ${operators.map(([key, label]) => html`<option key=${key} value=${key}>${label}</option>`)}
    </select>
    <${Values} about=${about} how=${takes(operator)} key=${about.kind + about.path + takes(operator)} />
    <button class="button primary">${t`Add filter`}</button>
  </form>`;
}

/** @type {Partial<Record<import("./operators.js").Kind, string>>} */
const INPUTS = { number: "number", date: "date", datetime: "datetime-local", time: "time" };

/** @param {{about: Filterable, how: ReturnType<typeof takes>}} props */
function Values({ about, how }) {
  if (how === "none") return "";
  if (how === "one") return html`<${Value} about=${about} label=${t`Value`} />`;
  if (how === "two") return html`<${Value} about=${about} label=${t`From`} /><${Value} about=${about} label=${t`To`}
    />`;
  if (!about.choices) {
    return html`<input class="input" name="value" aria-label=${t`Values`} required autocomplete="off"
      placeholder=${about.kind === "related" ? t`Titles, separated by commas` : t`Values, separated by commas`} />`;
  }
  return html`<fieldset class="choices"><legend class="unseen">${t`Values`}</legend>
    ${about.choices.map((choice) => html`<label class="choice" key=${choice}>
      <input type="checkbox" name="value" value=${choice} /> ${choice}
    </label>`)}
  </fieldset>`;
}

/** @param {{about: Filterable, label: string}} props */
function Value({ about: { kind, choices }, label }) {
  const options = kind === "boolean" ? [["true", "yes"], ["false", "no"]] : choices?.map((each) => [each, each]);
  if (options && kind !== "text") {
    return html`<select class="select" name="value" aria-label=${label}>
      ${options.map(([value, label]) => html`<option key=${value} value=${value}>${label}</option>`)}
    </select>`;
  }
  return html`<input class="input" name="value" aria-label=${label} required autocomplete="off"
    type=${INPUTS[kind] ?? "text"} step=${kind === "number" ? "any" : undefined}
    placeholder=${kind === "related" ? t`Title` : ""} />`;
}
