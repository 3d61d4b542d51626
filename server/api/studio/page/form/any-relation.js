/**
 * The input for a relation to documents of any content type: the user first selects the type, then finds a document.
 */

import { addressTo } from "../addresses.js";
import { useStudio } from "../context.js";
import { Icon } from "../icons.js";
import { t } from "../language.js";
import { Link } from "../router.js";
import { html, useState } from "../vendor/preact.js";
import { Search } from "./relation-input.js";
import { isList } from "./shape.js";
import { Sortable } from "./sortable.js";

/** @typedef {{documentId: string, __title: string, __type: string}} Target */

/** @param {import("./field.js").InputProps} props */
export function AnyRelation({ id, attribute, value, change, aria }) {
  const { model } = useStudio();
  const types = model.listed;
  const [uid, choose] = useState(types[0]?.uid ?? "");
  const type = types.find((one) => one.uid === uid);
  const many = isList(attribute);
  /** @type {Target[]} */
  const targets = many ? (value ?? []) : value ? [value] : [];
  const labelOf = (/** @type {Target} */ target) => types.find((one) => one.uid === target.__type)?.label ?? "";
  const nameOf = (/** @type {Target} */ target) => `${target.__title}, ${labelOf(target)}`;
  const add = (/** @type {any} */ target) => {
    const made = { ...target, __type: uid };
    change(many ? [...targets, made] : made);
  };
  const shown = (/** @type {Target} */ target) => {
    const to = { type: types.find((one) => one.uid === target.__type)?.name ?? "", id: target.documentId };
    return html`${to.type ? html`<${Link} to=${addressTo("document", to)}>${target.__title}<//>` : target.__title}
      <span class="target-type">${labelOf(target)}</span>`;
  };
  return html`<div class="relation" ...${aria}>
    ${many
      ? html`<${Sortable} id=${id} items=${targets} nameOf=${nameOf} change=${change} kind="is-targets"
          keyOf=${(/** @type {Target} */ t) => `${t.__type}/${t.documentId}`}>${shown}<//>`
      : targets.map((target) => html`<p class="target" key=${target.documentId}>
          <span class="target-name">${shown(target)}</span>
          <button class="icon-button" type="button" aria-label=${t`Remove ${nameOf(target)}`}
            onClick=${() => change(null)}><${Icon} name="close" /></button>
        </p>`)}
    <div class="any-type">
      <select class="input" aria-label=${t`Type`} value=${uid}
        onChange=${(/** @type {any} */ e) => choose(e.target.value)}>
        ${types.map((one) => html`<option key=${one.uid} value=${one.uid}>${one.label}</option>`)}
      </select>
      ${type && html`<${Search} key=${uid} id=${`${id}-find`} type=${type} aria=${{ "aria-labelledby": `${id}-label` }}
        add=${add} chosen=${targets.filter((target) => target.__type === uid)} />`}
    </div>
  </div>`;
}
