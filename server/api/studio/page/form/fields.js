/** The fields of a form, one for each attribute. */

import { t } from "../language.js";
import { html } from "../vendor/preact.js";
import { AttributeField } from "./attribute.js";
import { kindOf } from "./kinds.js";

/**
 * @param {{resource: import("./resource.js").FormResource, editing: any, changed: string[], mayWrite: boolean}} props
 */
export function Fields({ resource, editing, changed, mayWrite }) {
  const { model, attributes, id, isShared } = resource;
  const { state, change, choose } = editing;
  const shown = Object.entries(attributes).filter(([, attribute]) => kindOf(attribute));
  return html`<form class="fields" novalidate onSubmit=${(/** @type {Event} */ e) => e.preventDefault()}>
    <fieldset class="plain" disabled=${!mayWrite}>
      <legend class="unseen">${t`Attributes`}</legend>
      ${shown.map(([name, attribute]) => html`<${AttributeField} key=${name} name=${name} path=${[name]}
        shared=${isShared(attribute) && model.locales.length > 1} attribute=${attribute}
        value=${state.values[name]} siblings=${state.values} isNew=${!id} changed=${changed.includes(name)}
        errors=${state.errors} theirs=${name in state.theirs ? { value: state.theirs[name] } : undefined}
        change=${change} choose=${choose} />`)}
    </fieldset>
  </form>`;
}
