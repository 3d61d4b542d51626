/** The settings in site.yaml, as forms. Each change is shown as the changed lines before it is saved. */

import { ask } from "../api.js";
import { useStudio } from "../context.js";
import { useInvalidFocus } from "../invalid-focus.js";
import { t } from "../language.js";
import { useHeading } from "../site/heading.js";
import { Empty, Failure, Loading, Notice } from "../states.js";
import { SETTINGS, clearMessage, showError, showNotice } from "../store/messages.js";
import { useRequest } from "../store/requests.js";
import { counted } from "../text.js";
import { html, useState } from "../vendor/preact.js";
import { sentence } from "./requests.js";
import { fieldsOf, parsedValue } from "./setting-values.js";
import { SettingField } from "./setting-field.js";
import { CHANGED_MEANWHILE, ReviewDialog } from "./site-file.js";

const GROUPS = [
  { title: t`Site`, keys: /^(name$|locales\.)/ },
  { title: "API", keys: /^api\./ },
  { title: t`Sessions`, keys: /^auth\./ },
  { title: t`Events and branches`, keys: /^(events|branches)\./ },
];

export function SettingsPage() {
  const { model } = useStudio();
  useHeading(model, t`Settings`);
  const may = model.maySite("settings", "read");
  const { value, error, retry, reload } = useRequest(may ? "settings" : "", (signal) => ask("settings", { signal }));
  return html`<div class="page site-page settings-page">
    <header class="page-head"><h1 tabindex="-1">${t`Settings`}</h1></header>
    ${!may && html`<${Empty} title=${t`Your role can't see settings`}>
      ${t`An administrator can grant it with settings: [read, write].`}<//>`}
    ${may && !value && error && html`<${Failure} error=${error} again=${retry} />`}
    ${may && !value && !error && html`<${Loading} />`}
    ${value?.meta.problem && html`<p class="notice">
      ${t`site.yaml has an error, so the last good settings are in use: ${value.meta.problem}`}</p>`}
    ${value && html`<${Forms} settings=${value.data} etag=${value.etag} reload=${reload} />`}
  </div>`;
}

/** @param {{settings: any[], etag: string, reload: () => Promise<void>}} props */
function Forms({ settings, etag, reload }) {
  const { model } = useStudio();
  const [edits, setEdits] = useState(/** @type {Record<string, string>} */ ({}));
  const [wrong, setWrong] = useState(/** @type {Record<string, string>} */ ({}));
  const [reviewing, setReviewing] = useState(false);
  useInvalidFocus(wrong, ".settings-page");
  const mayWrite = model.maySite("settings", "write");
  const fields = fieldsOf(settings);
  const changed = fields.filter(({ key, text }) => key in edits && edits[key] !== text);
  const data = Object.fromEntries(changed.map((field) => [field.key, parsedValue(field, edits[field.key])]));
  const restart = changed.filter(({ setting }) => setting.restart).map(({ label }) => label);
  /** @param {import("../api.js").ApiError} error */
  const refused = async (error) => {
    setReviewing(false);
    const rows = /** @type {any[]} */ (error.details?.errors ?? []);
    const named = Object.fromEntries(rows.map((row) => [row.path.join("."), row.message]));
    setWrong(named);
    showError(SETTINGS, error.status === 412 ? CHANGED_MEANWHILE : sentence(error));
    if (error.status === 412) await reload();
  };
  const done = async () => {
    const told = restart.length ? t`Saved. Restart the server to apply: ${restart.join(", ")}.` : t`Saved.`;
    setEdits({});
    setWrong({});
    await reload();
    setReviewing(false);
    showNotice(SETTINGS, told);
  };
  /** @param {string} key @param {string} text */
  const edit = (key, text) => {
    clearMessage(SETTINGS);
    setEdits({ ...edits, [key]: text });
  };
  return html`<form class="settings" onSubmit=${(/** @type {Event} */ event) => {
    event.preventDefault();
    if (changed.length) setReviewing(true);
  }}>
    ${GROUPS.map(({ title, keys }) => {
      const inGroup = fields.filter(({ key }) => keys.test(key));
      return inGroup.length > 0 && html`<fieldset key=${title} class="settings-group">
        <legend>${title}</legend>
        ${inGroup.map((field) => html`<${SettingField} key=${field.key} field=${field} disabled=${!mayWrite}
          text=${edits[field.key] ?? field.text} wrong=${wrong[field.key] ?? ""}
          change=${(/** @type {string} */ text) => edit(field.key, text)} />`)}
      </fieldset>`;
    })}
    ${mayWrite && html`<div class="save-bar">
      <${Notice} place=${SETTINGS} />
      <button class="button primary" type="submit" disabled=${!changed.length}>${t`Review and save`}</button>
      <button class="button" type="button" disabled=${!changed.length}
        onClick=${() => setEdits({})}>${t`Undo changes`}</button>
      <span role="status">${changed.length ? t`${counted(changed.length)} changed` : ""}</span>
    </div>`}
    <${Others} settings=${settings.filter(({ editable }) => !editable)} />
    ${reviewing && html`<${ReviewDialog} title=${t`Change settings?`} change=${{ path: "settings", data }} etag=${etag}
      close=${() => setReviewing(false)} done=${done} refused=${refused}
      note=${restart.length ? html`<p>${t`A restart of the server is needed for: ${restart.join(", ")}.`}</p>` : null}
        />`}
  </form>`;
}

/** The settings that can be changed only in the file. @param {{settings: any[]}} props */
function Others({ settings }) {
  const shown = settings.filter((setting) => setting.set);
  if (!shown.length) return null;
  return html`<details class="settings-others">
    <summary>${t`Set in site.yaml only (${counted(shown.length)})`}</summary>
    <p class="hint">
      ${t`These settings decide where data, e-mails or credentials go, so they are changed in the file.`}</p>
    <dl>${shown.map((setting) => html`<div key=${setting.key}>
      <dt><code>${setting.key}</code></dt>
      <dd>${setting.secret ? t`Hidden, because it can contain a password` : shownValue(setting.value)}
        <span class="hint"> ${setting.description}
          ${setting.restart ? ` ${t`A change requires a restart.`}` : ""}</span></dd>
    </div>`)}</dl>
  </details>`;
}

/** @param {any} value */
const shownValue = (value) => (typeof value === "object" ? JSON.stringify(value) : String(value));
