/** One attribute of a document as a field. It is rendered again only when something of it has changed. */

import { html, useMemo } from "../vendor/preact.js";
import { Field, ariaOf, idOf, labelOf } from "./field.js";
import { hintOf, kindOf } from "./kinds.js";
import { Theirs } from "./theirs.js";

/**
 * @typedef {object} Props
 * @property {string} name
 * @property {string[]} path
 * @property {import("../model.js").Attribute} attribute
 * @property {any} value
 * @property {Record<string, any>} siblings  The values beside it.
 * @property {boolean} isNew
 * @property {boolean} [changed]
 * @property {boolean} [shared]  Whether it has one value for all locales.
 * @property {Record<string, string>} errors
 * @property {{value: any}} [theirs]
 * @property {(name: string, value: any) => void} change
 * @property {(name: string, mine: boolean) => void} [choose]
 */

/** @param {Props} props */
export function AttributeField({ name, path, attribute, value, siblings, isNew, changed, errors, theirs, ...rest }) {
  const { change, choose, shared } = rest;
  const beside = attribute.targetField ? siblings[attribute.targetField] : undefined;
  const dotted = path.join(".");
  const other = theirs ? [theirs.value] : [undefined, true];
  return useMemo(() => {
    const kind = kindOf(attribute);
    if (!kind) return null;
    const id = idOf(path);
    const error = errors[dotted] ?? "";
    const hint = [hintOf(attribute), shared && "Shared by all locales"].filter(Boolean).join(" · ");
    const set = (/** @type {any} */ made) => change(name, made);
    const aria = ariaOf(id, hint, error, attribute.required);
    const nesting = kind.group ? { path, errors, field: AttributeField } : {};
    const input = { id, attribute, value, change: set, isNew, siblings, aria, ...nesting };
    const below = theirs && choose && html`<${Theirs} value=${theirs.value} mine=${value} label=${labelOf(name)}
      choose=${(/** @type {boolean} */ mine) => choose(name, mine)} />`;
    return html`<${Field} ...${{ id, hint, error, changed, below }} label=${labelOf(name)} group=${kind.group}
      required=${attribute.required}><${kind.input} ...${input} /><//>`;
  }, [name, dotted, attribute, value, beside, isNew, changed, errors, other[0], other.length, change, choose]);
}
