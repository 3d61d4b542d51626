/**
 * The field for an attribute whose value is never displayed. It has no input until the user replaces or clears the
 * value.
 */

import { t } from "../language.js";
import { html, useEffect, useLayoutEffect, useRef, useState } from "../vendor/preact.js";
import { FieldPeople } from "../presence/people.js";
import { Field, idOf } from "./field.js";
import { labelOf } from "../text.js";
import { isList } from "./shape.js";
import { isEmpty, UNSEEN } from "./values.js";

const INPUTS = "input, textarea, select, button, [contenteditable=true]";
const NOT_SHOWN = t`Your role can't see this value.`;
const CLEARED = t`Saving clears it.`;
const EMPTY = t`Leave empty to keep the current value`;

/** @param {import("./attribute.js").Props & {open: any}} props  `open` is the field with its input. */
export function WithheldField({ open: OpenField, ...props }) {
  const { name, path, attribute, value, isNew, errors, change } = props;
  const [replacing, replace] = useState(false);
  const held = useRef(/** @type {any} */ (UNSEEN)); // what this field has made of the value last
  const [chosen, count] = useState(0); // how often by a button, which is gone then: the focus stays in the field
  const isThere = useRef(false);
  if (value === UNSEEN) isThere.current = true;
  useLayoutEffect(() => {
    if (value === UNSEEN && held.current !== UNSEEN) replace(false); // What was typed is saved.
    if (value === UNSEEN) held.current = UNSEEN;
  }, [value]);
  useEffect(() => {
    if (!chosen) return;
    const found = document.getElementById(idOf(path));
    const first = found?.matches("[role=group]") ? found.querySelector(INPUTS) : found;
    /** @type {HTMLElement | null | undefined} */ (first)?.focus();
  }, [chosen]);
  if (isNew || !isThere.current) return html`<${OpenField} ...${props} />`;

  const hold = (/** @type {any} */ made) => {
    held.current = made;
    change(name, made);
  };
  const choose = (/** @type {boolean} */ opens, /** @type {any} */ made) => {
    count(chosen + 1);
    replace(opens);
    hold(made);
  };
  const button = (/** @type {string} */ label, /** @type {() => void} */ act) => html`<button class="button quiet"
    type="button" aria-describedby=${`${idOf(path)}-label`} onClick=${act}>${label}</button>`;
  if (!replacing) {
    const dotted = path.join(".");
    const within = Object.keys(errors).find((at) => at === dotted || at.startsWith(`${dotted}.`));
    const isCleared = value !== UNSEEN;
    return html`<${Field} id=${idOf(path)} label=${labelOf(name)} path=${dotted} group=${true}
      required=${attribute.required} changed=${props.changed} error=${within && errors[within]}
      aside=${html`<${FieldPeople} path=${dotted} />`}>
      <div class="withheld">
        <span class="withheld-word">${isCleared ? CLEARED : NOT_SHOWN}</span>
        ${isCleared
          ? button(t`Keep it`, () => choose(false, UNSEEN))
          : button(t`Replace`, () => choose(true, UNSEEN))}
        ${!isCleared && !attribute.required && button(t`Clear`, () => choose(false, null))}
      </div>
    <//>`;
  }
  const set = (/** @type {string} */ _, /** @type {any} */ typed) => {
    hold(isEmpty(typed) || (isList(attribute) && !typed.length) ? UNSEEN : typed); // Left empty, it stays.
  };
  return html`<${OpenField} ...${props} value=${value === UNSEEN ? null : value} change=${set} note=${EMPTY}
    more=${html`<p class="withheld-back">${button(t`Keep the current value`, () => choose(false, UNSEEN))}</p>`} />`;
}
