/** Displays the changes of a branch: one part for each document, with its attributes and their marked words. */

import { addressTo } from "../addresses.js";
import { useStudio } from "../context.js";
import { StatusMark } from "../documents/status.js";
import { rowsOf } from "../history/changes.js";
import { Sides } from "../history/sides.js";
import { t } from "../language.js";
import { Link } from "../router.js";
import { labelOf } from "../text.js";
import { html, useMemo } from "../vendor/preact.js";

/**
 * @typedef {import("./changes.js").Change} Change
 * @typedef {import("../history/comparison.js").Known} Known
 */

export const ACTIONS = {
  create: t`New`,
  update: t`Changed`,
  delete: t`Deleted`,
  publish: t`Published`,
  unpublish: t`Unpublished`,
};

/** @param {{changes: Change[], known: Known, branch: string}} props */
export function ChangeList({ changes, known, branch }) {
  return html`<ul class="branch-changes">${changes.map((change) => html`<li key=${keyOf(change)}>
    <${Changed} change=${change} known=${known} branch=${branch} />
  </li>`)}</ul>`;
}

/** @param {Change} change */
const keyOf = ({ type, documentId, locale, status }) => [type, documentId, locale, status].join(" ");

/** @param {{change: Change, known: Known, branch: string}} props */
function Changed({ change, known, branch }) {
  const { model } = useStudio();
  const { action, attributes, documentId, title } = change;
  const type = model.types.find((one) => one.name === change.type);
  const names = Object.keys(attributes);
  const to = type && model.typeNamed(type.name) && action !== "delete" ? formAddress(model, change, branch) : "";
  const name = title || documentId;
  return html`<details class="branch-change" open=${action === "update"}>
    <summary>
      <h2 class="branch-change-title">${name}</h2>
      <span class="branch-change-kind">${kindOf(model, change, type)}</span>
      <span class=${`changed-action is-${action}`}>${ACTIONS[action]}</span>
    </summary>
    <div class="branch-change-body">
      ${to && html`<p><${Link} class="branch-change-open" to=${to}>${t`Open on ${branch}`}
        <span class="unseen">: ${name}</span><//></p>`}
      ${names.length > 0 && html`<div class="compare-names" aria-hidden="true"><span>${t`Before`}</span>
        <span>${t`On ${branch}`}</span></div>`}
      ${names.map((one) => html`<${Field} key=${one} name=${one} type=${type} known=${known} branch=${branch}
        difference=${attributes[one]} />`)}
      ${names.length === 0 && html`<p class="hint">${change.status
        ? t`You can't see the changed fields.` : t`No visible field changed`}</p>`}
    </div>
  </details>`;
}

/**
 * Return the URL of a document's form on a branch.
 * @param {import("../model.js").Model} model
 * @param {{type: string, documentId: string, locale: string}} document
 * @param {string} branch
 */
export function formAddress(model, { type, documentId, locale }, branch) {
  /** @type {Record<string, string>} */
  const params = locale === model.defaultLocale ? {} : { locale };
  return addressTo("document", { type, id: documentId }, params, { branch, at: "" });
}

/**
 * Return the content type, language and status of a document version.
 * @param {import("../model.js").Model} model
 * @param {{type: string, locale: string, status: "published" | "draft" | ""}} version
 * @param {import("../model.js").Type | undefined} type
 */
export function kindOf(model, { type: name, locale, status }, type) {
  const language = type ? model.localeOf(type, locale) : "";
  return html`${type?.label ?? labelOf(name)}${language && `, ${language}`}
    ${type?.drafts && status && html` <${StatusMark} status=${status} />`}`;
}

/**
 * @param {{name: string, type: import("../model.js").Type | undefined, known: Known, branch: string,
 *   difference: {from: any, to: any}}} props
 */
export function Field({ name, type, known, branch, difference: { from, to } }) {
  const { model } = useStudio();
  const rows = useMemo(() => rowsOf({ model, known }, attributeOf(type, name, [from, to]), from, to), [from, to]);
  const names = /** @type {[string, string]} */ ([t`Before`, t`On ${branch}`]);
  return html`<div class="branch-field" role="group" aria-label=${labelOf(name)}>
    <h3 class="compare-field-name">${labelOf(name)}</h3>
    ${rows.map((row, index) => html`<${Sides} key=${index} row=${row} names=${names} />`)}
  </div>`;
}

/**
 * Return an attribute. If only the branch's content type has it, return one that fits its values.
 * @param {import("../model.js").Type | undefined} type
 * @param {string} name
 * @param {any[]} values
 * @returns {import("../model.js").Attribute}
 */
export function attributeOf(type, name, values) {
  const found = type?.attributes[name];
  return found ?? { type: values.every((value) => value === null || typeof value !== "object") ? "text" : "json" };
}
