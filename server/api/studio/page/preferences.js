/** What each user chooses for the studio in this browser: the color theme and the language. */

import { Dialog } from "./dialog.js";
import { Icon } from "./icons.js";
import { LANGUAGE, LANGUAGES, chooseLanguage, t } from "./language.js";
import { THEMES, chooseTheme, chosenTheme, themeName } from "./theme.js";
import { html, useState } from "./vendor/preact.js";

/** The button in the menu that opens the dialog. */
export function PreferencesButton() {
  const [open, setOpen] = useState(false);
  return html`<button class="icon-button" type="button" aria-haspopup="dialog" aria-label=${t`Theme and language`}
      title=${t`Theme and language`} onClick=${() => setOpen(true)}>
      <${Icon} name="settings" />
    </button>
    ${open && html`<${Preferences} close=${() => setOpen(false)} />`}`;
}

/** @param {{close: () => void}} props */
function Preferences({ close }) {
  const [theme, setTheme] = useState(chosenTheme);
  /** @param {any} event */
  const choose = ({ target: { value } }) => {
    chooseTheme(value);
    setTheme(value);
  };
  return html`<${Dialog} label=${t`Theme and language`} close=${close}>
    <h2 class="dialog-title">${t`Theme and language`}</h2>
    <label class="field">
      <span class="field-label">${t`Theme`}</span>
      <select class="select" value=${theme} onChange=${choose}>
        ${THEMES.map((each) => html`<option key=${each} value=${each}>${themeName(each)}</option>`)}
      </select>
    </label>
    <${LanguageSelect} />
    <div class="dialog-actions">
      <button class="button" type="button" onClick=${close}>${t`Close`}</button>
    </div>
  <//>`;
}

/** The menu of languages. A choice reloads the page. */
export function LanguageSelect() {
  const choose = (/** @type {any} */ event) => chooseLanguage(event.target.value);
  return html`<label class="field">
    <span class="field-label">${t`Language`}</span>
    <select class="select" value=${LANGUAGE} onChange=${choose}>
      ${Object.entries(LANGUAGES).map(([code, name]) => html`<option key=${code} value=${code} lang=${code}>
        ${name}</option>`)}
    </select>
  </label>`;
}
