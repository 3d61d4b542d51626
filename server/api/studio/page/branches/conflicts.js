/** The conflicts of a merge: for each attribute, the user chooses between the value of the live site and the branch. */

import { useStudio } from "../context.js";
import { rowsOf } from "../history/changes.js";
import { Text } from "../history/sides.js";
import { textOf } from "../history/readable.js";
import { t } from "../language.js";
import { keyOf, useRequest } from "../store/requests.js";
import { labelOf } from "../text.js";
import { html, useEffect, useMemo, useRef, useState } from "../vendor/preact.js";
import { attributeOf, kindOf } from "./change-list.js";
import { referencesOn } from "./changes.js";

/**
 * @typedef {import("./merging.js").Choice} Choice
 * @typedef {import("./merging.js").Conflict} Conflict
 * @typedef {import("./merging.js").Conflicts} Conflicts
 * @typedef {import("../model.js").Type} Type
 * @typedef {import("../history/comparison.js").Known} Known
 * @typedef {Record<string, Choice>} Choices  The choices by the keys of `questionsOf`.
 */

const TYPED = ["string", "text", "richtext", "email", "uid"]; // attribute types whose value can be written here
const SHORT = 100; // characters of a value that is always shown
const WHOLE = ""; // the name of the attribute that stands for a whole document
/** @type {Known} */
const NONE_KNOWN = { documents: new Map(), files: new Map() };

/**
 * @param {{found: Conflicts, branch: string, compared?: import("./changes.js").Compared, isBusy: boolean,
 *   cancel: () => void,
 *   merge: (resolution: import("./merging.js").Resolution) => void}} props
 */
export function ConflictForm({ found, branch, compared, isBusy, cancel, merge }) {
  const [choices, set] = useState(/** @type {Choices} */ ({}));
  const heading = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => heading.current?.focus(), [found]);
  const keys = useMemo(() => questionsOf(found), [found]);
  const known = useKnown(found, branch);
  const decided = keys.filter((key) => isDecided(choices[key])).length;
  const off = isBusy || decided < keys.length;
  const hasMore = found.total > found.conflicts.length + found.files.length;
  const choose = (/** @type {string} */ key, /** @type {Choice} */ choice) => set({ ...choices, [key]: choice });
  const chooseAll = (/** @type {"ours" | "theirs"} */ side) => {
    set(Object.fromEntries(keys.map((key) => [key, side])));
  };
  const send = (/** @type {Event} */ event) => {
    event.preventDefault();
    if (!off) merge(resolutionOf(found, choices));
  };
  const ofBranch = [...(compared?.files ?? []), ...(compared?.media ?? [])];
  const isDeleted = (/** @type {string} */ path) => {
    return ofBranch.some((file) => file.path === path && file.action === "delete");
  };
  const sides = { ours: t`Live site`, theirs: t`Branch ${branch}` };
  return html`<form class="conflicts" onSubmit=${send}>
    <h2 tabindex="-1" ref=${heading}>${t`Conflicts`}</h2>
    <p>${t`The live site and this branch have changed the same values in different ways. Choose which ones to keep.
      Nothing is merged until you have decided all of them.`}</p>
    <p class="conflict-all">
      <button class="button" type="button" onClick=${() => chooseAll("ours")}>${t`Keep all of the live site`}</button>
      <button class="button" type="button" onClick=${() => chooseAll("theirs")}>${t`Use all of the branch`}</button>
    </p>
    ${found.conflicts.map((conflict) => html`<${Document} key=${conflict.document}
      ...${{ conflict, sides, choices, choose, known: known ?? NONE_KNOWN }} />`)}
    ${found.files.map((path) => html`<${Question} key=${path} label=${path} id=${fileKey(path)} sides=${sides}
      choice=${choices[fileKey(path)]} choose=${choose}
      values=${{ ours: html`<em>${t`The file of the live site`}</em>`, theirs: html`<em>
        ${isDeleted(path) ? t`Deleted on the branch` : t`The file of the branch`}</em>` }} />`)}
    <div class="conflict-actions">
      <span role="status">
        ${t`${decided} of ${keys.length} decided`}${hasMore && `. ${t`More conflicts follow after these`}`}</span>
      <button class="button" type="button" onClick=${cancel}>${t`Cancel`}</button>
      <button class="button primary" type="submit" aria-disabled=${off ? "true" : undefined}>
        ${isBusy ? t`Merging…` : t`Merge with these choices`}</button>
    </div>
  </form>`;
}

/** Return the documents and files to which the values in conflict refer. @param {Conflicts} found @param {string} at */
function useKnown({ conflicts }, at) {
  const { model } = useStudio();
  return useRequest(keyOf("conflicts", conflicts), (signal) => {
    const values = conflicts.flatMap((conflict) => {
      const type = model.types.find((one) => one.name === conflict.type);
      const pairs = Object.entries(conflict.attributes ?? {}).map(([name, { ours = null, theirs = null }]) => {
        return [name, { from: ours, to: theirs }];
      });
      return type ? [{ type, differences: Object.fromEntries(pairs) }] : [];
    });
    return referencesOn(at, model, values, signal);
  }).value;
}

/** @param {string} document @param {string} attribute */
const attributeKey = (document, attribute) => `document ${document} ${attribute}`;

/** @param {string} path */
const fileKey = (path) => `file ${path}`;

/** Return a key for each choice that the user has to make. @param {Conflicts} found */
function questionsOf({ conflicts, files }) {
  const ofDocuments = conflicts.flatMap(({ document, attributes }) => {
    return Object.keys(attributes ?? { [WHOLE]: {} }).map((name) => attributeKey(document, name));
  });
  return [...ofDocuments, ...files.map(fileKey)];
}

/** @param {Conflicts} found @param {Choices} choices @returns {import("./merging.js").Resolution} */
function resolutionOf({ conflicts, files }, choices) {
  const documents = conflicts.map(({ document, attributes }) => {
    if (!attributes) return [document, choices[attributeKey(document, WHOLE)]];
    const names = Object.keys(attributes);
    return [document, Object.fromEntries(names.map((name) => [name, choices[attributeKey(document, name)]]))];
  });
  return {
    documents: Object.fromEntries(documents),
    files: Object.fromEntries(files.map((path) => [path, choices[fileKey(path)]])),
  };
}

/** @param {Choice | undefined} choice */
const isDecided = (choice) => choice !== undefined;

/**
 * @param {{conflict: Conflict, sides: Record<"ours" | "theirs", string>, choices: Choices, known: Known,
 *   choose: (key: string, choice: Choice) => void}} props
 */
function Document({ conflict, sides, choices, known, choose }) {
  const { model } = useStudio();
  const type = model.types.find((one) => one.name === conflict.type);
  const { document, deleted, attributes } = conflict;
  const [gone, kept] = [html`<em>${t`Deleted`}</em>`, html`<em>${t`Changed`}</em>`];
  const whole = { ours: deleted === "ours" ? gone : kept, theirs: deleted === "theirs" ? gone : kept };
  return html`<section class="conflict-document" aria-label=${conflict.title || conflict.documentId}>
    <h3>${conflict.title || conflict.documentId}
      ${" "}<span class="branch-change-kind">${kindOf(model, conflict, type)}</span></h3>
    ${!attributes && html`<${Question} label=${t`The document was changed on one side and deleted on the other`}
      id=${attributeKey(document, WHOLE)} sides=${sides} values=${whole} choose=${choose}
      choice=${choices[attributeKey(document, WHOLE)]} />`}
    ${Object.entries(attributes ?? {}).map(([name, values]) => html`<${Attribute} key=${name}
      ...${{ name, type, values, sides, known, choose }} id=${attributeKey(document, name)}
      choice=${choices[attributeKey(document, name)]} />`)}
  </section>`;
}

/**
 * @param {{name: string, type: Type | undefined, values: {base?: any, ours?: any, theirs?: any, cut?: boolean},
 *   sides: Record<"ours" | "theirs", string>, known: Known, id: string, choice: Choice | undefined,
 *   choose: (key: string, choice: Choice) => void}} props
 */
function Attribute({ name, type, values, sides, known, id, choice, choose }) {
  const { model } = useStudio();
  const { base = null, ours = null, theirs = null, cut } = values;
  const isHidden = !("ours" in values);
  const attribute = attributeOf(type, name, [base, ours, theirs]);
  const rows = useMemo(() => rowsOf({ model, known }, attribute, ours, theirs), [values, known]);
  const show = (/** @type {"left" | "right"} */ side) => html`${rows.map((row, i) => html`<div key=${i}>
    ${row.path.length > 0 && html`<p class="change-path">${row.path.join(" › ")}</p>`}
    <${Value} row=${row} side=${side} /></div>`)}`;
  const hidden = html`<em>${t`You can't see this value`}</em>`;
  const shown = isHidden ? { ours: hidden, theirs: hidden } : { ours: show("left"), theirs: show("right") };
  const note = cut ? t`Long values are shown in part.` : "";
  const before = isHidden || typeof base === "object" ? "" : textOf(attribute, base);
  const typed = TYPED.includes(attribute.type) && !cut && !isHidden ? String(theirs ?? "") : null;
  return html`<${Question} label=${labelOf(name)} ...${{ id, sides, choice, choose, note, before, typed }}
    values=${shown} />`;
}

/** @param {{row: import("../history/changes.js").Row, side: "left" | "right"}} props */
function Value({ row, side }) {
  const parts = row[side];
  if (row.kind !== "items") return html`<${Text} parts=${parts} code=${row.kind === "code"} />`;
  if (!parts.length) return html`<em class="change-nothing">${t`nothing`}</em>`;
  return html`<ul class="change-items">${parts.map((part, i) => html`<li key=${i}>
    ${part.kind === "same" ? part.text : html`<mark>${part.text}</mark>`}</li>`)}</ul>`;
}

/** The value that both sides have changed. @param {{text: string}} props */
function Before({ text }) {
  if (text.length < SHORT && !text.includes("\n")) return html`<p class="hint">${t`Before both changes: ${text}`}</p>`;
  return html`<details><summary>${t`Before both changes`}</summary><p>${text}</p></details>`;
}

/**
 * A choice between two sides. If `typed` is not null, the user can also write another value.
 * @param {{label: string, id: string, sides: Record<"ours" | "theirs", string>,
 *   values: Record<"ours" | "theirs", any>, choice: Choice | undefined, note?: string, before?: string,
 *   typed?: string | null, choose: (key: string, choice: Choice) => void}} props
 */
function Question({ label, id, sides, values, choice, note = "", before = "", typed = null, choose }) {
  const own = typeof choice === "object" ? choice : null;
  const radio = (/** @type {Choice} */ value, /** @type {boolean} */ isChosen, /** @type {string} */ text) => {
    return html`<label class="conflict-choice"><input type="radio" name=${id} checked=${isChosen}
      onChange=${() => choose(id, value)} /> ${text}</label>`;
  };
  return html`<fieldset class="conflict">
    <legend>${label}</legend>
    <div class="conflict-sides">
      ${/** @type {const} */ (["ours", "theirs"]).map((side) => html`<div key=${side}
        class=${`conflict-side ${choice === side ? "is-chosen" : ""}`}>
        ${radio(side, choice === side, sides[side])}
        <div class="conflict-value">${values[side]}</div>
      </div>`)}
    </div>
    ${before && html`<${Before} text=${before} />`}
    ${note && html`<p class="hint">${note}</p>`}
    ${typed !== null && radio(own ?? { value: typed }, own !== null, t`Another value`)}
    ${own && html`<textarea class="input" rows="2" aria-label=${t`Another value: ${label}`} value=${own.value}
      onInput=${(/** @type {any} */ event) => choose(id, { value: event.currentTarget.value })}></textarea>`}
  </fieldset>`;
}
