/** Compares two versions side by side, attribute by attribute. The form can use a value from either version. */

import { t } from "../language.js";
import { labelOf, timestamp } from "../text.js";
import { kindOf } from "../form/kinds.js";
import { isShared } from "../documents/locales.js";
import { rightsOf } from "../documents/rights.js";
import { changedNames, same } from "../form/values.js";
import { Empty, Failure, Loading } from "../states.js";
import { FORM, showNotice } from "../store/messages.js";
import { keyOf, useRequest } from "../store/requests.js";
import { html, useMemo, useState } from "../vendor/preact.js";
import { compare } from "./comparison.js";
import { rowsOf } from "./changes.js";
import { Gone, ReplaceUnsaved, RestoreWhole } from "./put-back.js";
import { formValue } from "./readable.js";
import { Sides } from "./sides.js";
import { keyOf as versionKey, lineOf, whoOf } from "./versions.js";

/**
 * @typedef {import("./versions.js").Version} Version
 * @typedef {{side: string, value: any}} Offered
 * @typedef {{left: string, right: string}} Chosen  Keys of versions. `left` is "" for the version before `right`.
 */

const BEFORE = t`Previous version`;

/**
 * @param {{subject: import("../documents/form.js").Subject, editing: any, versions: Version[], chosen: Chosen,
 *   choose: (chosen: Chosen) => void}} props
 */
export function CompareView({ subject, editing, versions, chosen, choose }) {
  const [left, right] = useMemo(() => pairOf(versions, chosen), [versions, chosen]);
  const etag = editing.state.version?.etag ?? "";
  const names = [left ? lineOf(left, subject.drafts) : BEFORE, lineOf(right, subject.drafts)];
  const key = keyOf("compare", subject, left && versionKey(left), versionKey(right), etag);
  const { value, error, retry } = useRequest(key, async (signal) => {
    return { comparison: await compare(subject, left, right, signal), names };
  });
  return html`
    <${Choice} ...${{ subject, versions, chosen, choose }} />
    <${About} ...${{ subject, editing, version: right }} />
    ${error
      ? html`<${Failure} error=${error} again=${retry} />`
      : value
        ? html`<${Differences} ...${{ subject, editing, ...value }} />`
        : html`<${Loading} label=${t`Comparing`} />`}`;
}

/**
 * Return the two selected versions, the older one first.
 * @param {Version[]} versions
 * @param {Chosen} chosen
 * @returns {[Version | null, Version]}
 */
function pairOf(versions, chosen) {
  const find = (/** @type {string} */ key) => versions.findIndex((version) => versionKey(version) === key);
  const right = Math.max(find(chosen.right), 0);
  const left = find(chosen.left);
  if (left < 0) return [null, versions[right]];
  return [versions[Math.max(left, right)], versions[Math.min(left, right)]];
}

/**
 * @param {{subject: import("../documents/form.js").Subject, versions: Version[], chosen: Chosen,
 *   choose: (chosen: Chosen) => void}} props
 */
function Choice({ subject, versions, chosen, choose }) {
  const options = versions.map((version) => html`<option key=${versionKey(version)} value=${versionKey(version)}>
    ${lineOf(version, subject.drafts)}</option>`);
  const value = (/** @type {Event} */ event) => /** @type {HTMLSelectElement} */ (event.target).value;
  return html`<div class="compare-choice">
    <label class="compare-label">${t`Compare`}
      <select class="select" value=${chosen.right}
        onChange=${(/** @type {Event} */ e) => choose({ ...chosen, right: value(e) })}>${options}</select>
    </label>
    <label class="compare-label">${t`with`}
      <select class="select" value=${chosen.left}
        onChange=${(/** @type {Event} */ e) => choose({ ...chosen, left: value(e) })}>
        <option value="">${BEFORE}</option>
        ${options}
      </select>
    </label>
  </div>`;
}

/** @param {{subject: import("../documents/form.js").Subject, editing: any, version: Version}} props */
function About({ subject, editing, version }) {
  const { model, type, id } = subject;
  const [asking, ask] = useState(false);
  const { state } = editing;
  const may = rightsOf(model, type, !id).write && model.allows("history", "restore");
  const done = () => {
    ask(false);
    Promise.resolve(editing.hear()).then(() => showNotice(FORM, t`Version restored`));
  };
  return html`<div class="compare-about">
    <p><strong>${whoOf(version)}</strong>${version.date && html`${" "}<time class="hint" datetime=${version.date}>
      ${timestamp(version.date)}</time>`}</p>
    ${version.message && html`<p class="compare-message">${version.message}</p>`}
    ${may && version.commit && version.action !== "delete" && html`<button class="button" type="button"
      onClick=${() => ask(true)}>${t`Restore this version`}</button>`}
    ${asking && html`<${RestoreWhole} ...${{ subject, editing, version, done }} close=${() => ask(false)}
      unsaved=${changedNames(state.base, state.values)} />`}
  </div>`;
}

/**
 * @param {{subject: import("../documents/form.js").Subject, editing: any,
 *   comparison: import("./comparison.js").Comparison, names: [string, string]}} props
 */
function Differences({ subject, editing, comparison: { differences, unread, known }, names }) {
  const { type } = subject;
  const shown = Object.keys(differences).filter((name) => type.attributes[name]);
  const gone = [...new Set([...unread.from, ...unread.to])];
  return html`
    ${shown.length
      ? html`<div class="compare-names" aria-hidden="true"><span>${names[0]}</span><span>${names[1]}</span></div>`
      : html`<${Empty} title=${t`No differences`}>${t`All visible fields have the same values.`}<//>`}
    ${shown.map((name) => html`<${Field} key=${name} ...${{ subject, editing, name, known, names }}
      difference=${differences[name]} />`)}
    ${gone.length > 0 && html`<${Gone} names=${gone} />`}`;
}

/**
 * An attribute that differs between the versions.
 * @param {{subject: import("../documents/form.js").Subject, editing: any, name: string, names: [string, string],
 *   known: import("./comparison.js").Known, difference: {from: any, to: any}}} props
 */
function Field({ subject, editing, name, names, known, difference }) {
  const { model, type, id } = subject;
  const attribute = type.attributes[name];
  const [replacing, replace] = useState(/** @type {Offered | null} */ (null));
  const rows = useMemo(() => rowsOf({ model, known }, attribute, difference.from, difference.to), [difference]);
  const { base, values } = editing.state;
  const may = rightsOf(model, type, !id).write && kindOf(attribute) && name in values;
  const offered = may ? usableValues() : [];

  /** Return the values that differ from the form's value, in the form's representation. */
  function usableValues() {
    const sides = [["older", difference.from], ["newer", difference.to]];
    const made = sides.map(([side, value]) => ({ side, value: formValue(model, attribute, value, known, base[name]) }));
    return made.filter(({ value }) => !same(value, values[name]));
  }
  /** @param {Offered} chosen */
  const use = ({ side, value }) => {
    editing.change(name, value);
    showNotice(FORM, side === "older"
      ? t`The older value of ${labelOf(name)} was copied into the form and is not saved yet`
      : t`The newer value of ${labelOf(name)} was copied into the form and is not saved yet`);
    replace(null);
  };
  /** @param {Offered} chosen */
  const choose = (chosen) => (same(base[name], values[name]) ? use(chosen) : replace(chosen));
  const shared = isShared(type, attribute) && model.locales.length > 1;
  return html`<div class="compare-field" role="group" aria-label=${labelOf(name)}>
    <h3 class="compare-field-name">${labelOf(name)}
      ${shared && html`<span class="hint"> · ${t`Shared by all languages`}</span>`}</h3>
    ${rows.map((row, index) => html`<${Sides} key=${index} row=${row} names=${names} />`)}
    ${offered.length > 0 && html`<p class="compare-actions">
      ${offered.map((one) => html`<button class="button quiet" type="button" key=${one.side}
        onClick=${() => choose(one)}>${one.side === "older" ? t`Use the older value` : t`Use the newer value`}<span
          class="unseen">: ${labelOf(name)}</span></button>`)}
    </p>`}
    ${replacing && html`<${ReplaceUnsaved} label=${labelOf(name)} close=${() => replace(null)}
      put=${() => use(replacing)} />`}
  </div>`;
}
