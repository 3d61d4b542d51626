/** The field for an attribute of a document. It is rendered again only if its own data has changed. */

import { t } from "../language.js";
import { html, useMemo } from "../vendor/preact.js";
import { Field, ariaOf, idOf } from "./field.js";
import { labelOf } from "../text.js";
import { hintOf, kindOf } from "./kinds.js";
import { FieldPeople } from "../presence/people.js";
import { Theirs } from "./theirs.js";
import { isHidden } from "./values.js";
import { WithheldField } from "./withheld.js";

/**
 * @typedef {object} Props
 * @property {string} name
 * @property {string[]} path
 * @property {import("../model.js").Attribute} attribute
 * @property {any} value
 * @property {Record<string, any>} siblings  The values of the other attributes in the same document or component.
 * @property {boolean} isNew
 * @property {boolean} [changed]
 * @property {boolean} [shared]  Whether all locales have the same value.
 * @property {Record<string, string>} errors
 * @property {{value: any}} [theirs]
 * @property {(name: string, value: any) => void} change
 * @property {(name: string, mine: boolean) => void} [choose]
 * @property {string} [note]  A further note below the field.
 * @property {any} [more]  Further content below the field.
 */

/** @param {Props} props */
export function AttributeField(props) {
  return html`<${isHidden(props.attribute) ? WithheldField : OpenField} ...${props} open=${OpenField} />`;
}

/** The field together with its input. @param {Props} props */
function OpenField({ name, path, attribute, value, siblings, isNew, changed, errors, theirs, ...rest }) {
  const { change, choose, shared, note, more } = rest;
  const beside = attribute.targetField ? siblings[attribute.targetField] : undefined;
  const dotted = path.join(".");
  const other = theirs ? [theirs.value] : [undefined, true];
  return useMemo(() => {
    const kind = kindOf(attribute);
    if (!kind) return null;
    const id = idOf(path);
    const within = Object.keys(errors).find((at) => at.startsWith(`${dotted}.`));
    const error = errors[dotted] ?? (within && !kind.group ? errors[within] : "");
    const hint = [hintOf(attribute), shared && t`Shared by all languages`, note].filter(Boolean).join(" · ");
    const set = (/** @type {any} */ made) => change(name, made);
    const aria = ariaOf(id, hint, error, attribute.required);
    const nesting = kind.group ? { path, errors, field: AttributeField } : {};
    const label = labelOf(name);
    const input = { id, label, attribute, value, change: set, isNew, siblings, aria, ...nesting };
    const below = more ?? (theirs && choose && html`<${Theirs} value=${theirs.value} mine=${value}
      label=${label} choose=${(/** @type {boolean} */ mine) => choose(name, mine)} />`);
    const aside = html`<${FieldPeople} path=${dotted} />`;
    return html`<${Field} ...${{ id, label, hint, error, changed, below, aside, path: dotted }}
      group=${kind.group} required=${attribute.required}><${kind.input} ...${input} /><//>`;
  }, [name, dotted, attribute, value, beside, isNew, changed, errors, other[0], other.length, change, choose, note]);
}
