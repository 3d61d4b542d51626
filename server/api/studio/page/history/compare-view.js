/** Two versions beside each other, attribute by attribute, and what can be put back of them. */

import { labelOf } from "../form/field.js";
import { kindOf } from "../form/kinds.js";
import { isShared } from "../form/locales.js";
import { rightsOf } from "../form/rights.js";
import { changedNames, same } from "../form/values.js";
import { Empty, Failure, Loading } from "../states.js";
import { timestamp } from "../text.js";
import { html, useEffect, useMemo, useState } from "../vendor/preact.js";
import { compare } from "./comparison.js";
import { rowsOf } from "./changes.js";
import { Gone, ReplaceUnsaved, RestoreWhole } from "./put-back.js";
import { formValue } from "./readable.js";
import { Sides } from "./sides.js";
import { keyOf, lineOf, whoOf } from "./versions.js";

/**
 * @typedef {import("./versions.js").Version} Version
 * @typedef {{left: string, right: string}} Chosen  Keys of versions; `left` is "" for the one before `right`.
 */

const BEFORE = "The version before";

/**
 * @param {{subject: import("../form/editing.js").Subject, editing: any, versions: Version[], chosen: Chosen,
 *   choose: (chosen: Chosen) => void}} props
 */
export function CompareView({ subject, editing, versions, chosen, choose }) {
  const [left, right] = useMemo(() => pairOf(versions, chosen), [versions, chosen]);
  const [tries, again] = useState(0);
  const [{ found, error }, set] = useState(/** @type {{found?: any, error?: any}} */ ({}));
  const etag = editing.state.version?.etag ?? "";
  useEffect(() => {
    const controller = new AbortController();
    const names = [left ? lineOf(left, subject.drafts) : BEFORE, lineOf(right, subject.drafts)];
    compare(subject, left, right, controller.signal).then(
      (comparison) => set({ found: { comparison, names } }), // What was compared before stays until then.
      (failure) => failure.name !== "AbortError" && set({ error: failure }),
    );
    return () => controller.abort();
  }, [subject, left, right, etag, tries]);
  return html`
    <${Choice} ...${{ subject, versions, chosen, choose }} />
    <${About} ...${{ subject, editing, version: right }} />
    ${error
      ? html`<${Failure} error=${error} again=${() => again(tries + 1)} />`
      : found
        ? html`<${Differences} ...${{ subject, editing, ...found }} />`
        : html`<${Loading} label="Comparing" />`}`;
}

/**
 * The versions that are chosen, the older one first.
 * @param {Version[]} versions
 * @param {Chosen} chosen
 * @returns {[Version | null, Version]}
 */
function pairOf(versions, chosen) {
  const find = (/** @type {string} */ key) => versions.findIndex((version) => keyOf(version) === key);
  const right = Math.max(find(chosen.right), 0);
  const left = find(chosen.left);
  if (left < 0) return [null, versions[right]];
  return [versions[Math.max(left, right)], versions[Math.min(left, right)]];
}

/**
 * @param {{subject: import("../form/editing.js").Subject, versions: Version[], chosen: Chosen,
 *   choose: (chosen: Chosen) => void}} props
 */
function Choice({ subject, versions, chosen, choose }) {
  const options = versions.map((version) => html`<option key=${keyOf(version)} value=${keyOf(version)}>
    ${lineOf(version, subject.drafts)}</option>`);
  const value = (/** @type {Event} */ event) => /** @type {HTMLSelectElement} */ (event.target).value;
  return html`<div class="compare-choice">
    <label class="compare-label">Compare
      <select class="select" value=${chosen.right}
        onChange=${(/** @type {Event} */ e) => choose({ ...chosen, right: value(e) })}>${options}</select>
    </label>
    <label class="compare-label">with
      <select class="select" value=${chosen.left}
        onChange=${(/** @type {Event} */ e) => choose({ ...chosen, left: value(e) })}>
        <option value="">${BEFORE}</option>
        ${options}
      </select>
    </label>
  </div>`;
}

/** @param {{subject: import("../form/editing.js").Subject, editing: any, version: Version}} props */
function About({ subject, editing, version }) {
  const { model, type, id } = subject;
  const [asking, ask] = useState(false);
  const { state } = editing;
  const may = rightsOf(model, type, !id).write && model.allows("history", "restore");
  const done = () => {
    ask(false);
    Promise.resolve(editing.hear()).then(() => editing.update({ told: { text: "The version is restored" } }));
  };
  return html`<div class="compare-about">
    <p><strong>${whoOf(version)}</strong>${version.date && html`${" "}<time class="hint" datetime=${version.date}>
      ${timestamp(version.date)}</time>`}</p>
    ${version.message && html`<p class="compare-message">${version.message}</p>`}
    ${may && version.commit && version.action !== "delete" && html`<button class="button" type="button"
      onClick=${() => ask(true)}>Restore this version</button>`}
    ${asking && html`<${RestoreWhole} ...${{ subject, editing, version, done }} close=${() => ask(false)}
      unsaved=${changedNames(state.base, state.values)} />`}
  </div>`;
}

/**
 * @param {{subject: import("../form/editing.js").Subject, editing: any,
 *   comparison: import("./comparison.js").Comparison, names: [string, string]}} props
 */
function Differences({ subject, editing, comparison: { differences, unread, known }, names }) {
  const { type } = subject;
  const shown = Object.keys(differences).filter((name) => type.attributes[name]);
  const gone = [...new Set([...unread.from, ...unread.to])];
  return html`
    ${shown.length
      ? html`<div class="compare-names" aria-hidden="true"><span>${names[0]}</span><span>${names[1]}</span></div>`
      : html`<${Empty} title="They do not differ">No field that is shown here has another value.<//>`}
    ${shown.map((name) => html`<${Field} key=${name} ...${{ subject, editing, name, known, names }}
      difference=${differences[name]} />`)}
    ${gone.length > 0 && html`<${Gone} names=${gone} />`}`;
}

/**
 * One attribute that differs.
 * @param {{subject: import("../form/editing.js").Subject, editing: any, name: string, names: [string, string],
 *   known: import("./comparison.js").Known, difference: {from: any, to: any}}} props
 */
function Field({ subject, editing, name, names, known, difference }) {
  const { model, type, id } = subject;
  const attribute = type.attributes[name];
  const [replacing, replace] = useState(/** @type {{value: any} | null} */ (null));
  const rows = useMemo(() => rowsOf({ model, known }, attribute, difference.from, difference.to), [difference]);
  const { base, values } = editing.state;
  const may = rightsOf(model, type, !id).write && kindOf(attribute) && name in values;
  const offered = may ? putBack() : [];

  /** The sides that the form does not hold, as it would. */
  function putBack() {
    const sides = [["older", difference.from], ["newer", difference.to]];
    const made = sides.map(([side, value]) => ({ side, value: formValue(model, attribute, value, known, base[name]) }));
    return made.filter(({ value }) => !same(value, values[name]));
  }
  /** @param {any} value */
  const put = (value) => {
    editing.change(name, value);
    editing.update({ told: { text: `${labelOf(name)} is put back, and not saved yet` } });
    replace(null);
  };
  /** @param {any} value */
  const ask = (value) => (same(base[name], values[name]) ? put(value) : replace({ value }));
  const shared = isShared(type, attribute) && model.locales.length > 1;
  return html`<div class="compare-field" role="group" aria-label=${labelOf(name)}>
    <h3 class="compare-field-name">${labelOf(name)}
      ${shared && html`<span class="hint"> · Shared by all languages</span>`}</h3>
    ${rows.map((row, index) => html`<${Sides} key=${index} row=${row} names=${names} />`)}
    ${offered.length > 0 && html`<p class="compare-actions">
      ${offered.map(({ side, value }) => html`<button class="button quiet" type="button" key=${side}
        onClick=${() => ask(value)}>Put the ${side} one back<span class="unseen">: ${labelOf(name)}</span></button>`)}
    </p>`}
    ${replacing && html`<${ReplaceUnsaved} label=${labelOf(name)} close=${() => replace(null)}
      put=${() => put(replacing.value)} />`}
  </div>`;
}
