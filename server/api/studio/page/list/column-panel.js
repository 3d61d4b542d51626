/** The panel for choosing the columns of a list. */

import { t } from "../language.js";
import { html } from "../vendor/preact.js";

/**
 * @param {{columns: import("./resource.js").Column[], chosen: string[],
 *   choose: (names: string[] | null) => void}} props
 */
export function ColumnPanel({ columns, chosen, choose }) {
  /** @param {string} name */
  const toggle = (name) => choose(chosen.includes(name) ? chosen.filter((one) => one !== name) : [...chosen, name]);
  return html`<fieldset class="choices">
      <legend class="field-label">${t`Columns`}</legend>
      ${columns.map(({ name, label }) => html`<label class="choice" key=${name}>
        <input type="checkbox" checked=${chosen.includes(name)} onChange=${() => toggle(name)} />
        <span>${label}</span>
      </label>`)}
    </fieldset>
    <button class="button" type="button" onClick=${() => choose(null)}>${t`Reset columns`}</button>`;
}
