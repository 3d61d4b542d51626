/**
 * Displays the user's value next to a value that someone else has saved for the same attribute, so that the user can
 * choose.
 */

import { writeJson } from "../json.js";
import { t } from "../language.js";
import { html } from "../vendor/preact.js";
import { isEmpty, Unparsed } from "./values.js";

/** @param {{value: any, mine: any, label: string, choose: (mine: boolean) => void}} props */
export function Theirs({ value, mine, label, choose }) {
  return html`<div class="theirs" role="group" aria-label=${t`${label}: also changed by someone else`}>
    <p class="theirs-title">${t`Someone else changed this field.`}</p>
    <${Sides} left=${[t`Theirs`, value]} right=${[t`Yours`, mine]} />
    <p class="theirs-choice">
      <button class="button" type="button" onClick=${() => choose(false)}>${t`Use theirs`}</button>
      <button class="button" type="button" onClick=${() => choose(true)}>${t`Keep mine`}</button>
    </p>
  </div>`;
}

/** @param {{left: [string, any], right: [string, any], show?: (value: any) => any}} props */
export function Sides({ left, right, show = shown }) {
  return html`<div class="sides">
    ${[left, right].map(([title, value]) => html`<div class="side-by" key=${title}>
      <span class="side-by-title">${title}</span>
      <div class="side-by-value" tabindex="0" role="region" aria-label=${title}>${show(value)}</div>
    </div>`)}
  </div>`;
}

/** Return a value as text. @param {any} value */
export function shown(value) {
  if (value instanceof Unparsed) return value.text;
  if (isEmpty(value)) return html`<em>${t`nothing`}</em>`;
  if (Array.isArray(value) && !value.length) return html`<em>${t`nothing`}</em>`;
  if (value.__title) return value.__title;
  if (Array.isArray(value) && value.every((item) => item?.__title)) return value.map((item) => item.__title).join("\n");
  return typeof value === "object" ? writeJson(value, 2) : String(value);
}
