/** One attribute of a document as a field. It is rendered again only when something of it has changed. */

import { html, useMemo } from "../vendor/preact.js";
import { Field, ariaOf, idOf, labelOf } from "./field.js";
import { hintOf, kindOf } from "./kinds.js";
import { Theirs } from "./theirs.js";

/**
 * @param {{name: string, attribute: import("../model.js").Attribute, value: any, siblings: Record<string, any>,
 *   isNew: boolean, changed: boolean, error?: string, theirs?: {value: any},
 *   change: (name: string, value: any) => void, choose?: (name: string, mine: boolean) => void}} props
 */
export function AttributeField(props) {
  const { name, attribute, value, siblings, isNew, changed, error = "", theirs, change, choose } = props;
  const beside = attribute.targetField ? siblings[attribute.targetField] : undefined;
  return useMemo(() => {
    const kind = kindOf(attribute);
    if (!kind) return null;
    const id = idOf([name]);
    const hint = hintOf(attribute);
    const set = (/** @type {any} */ made) => change(name, made);
    const aria = ariaOf(id, hint, error, attribute.required);
    const input = { id, attribute, value, change: set, isNew, siblings, aria };
    const below = theirs && choose && html`<${Theirs} value=${theirs.value} mine=${value} label=${labelOf(name)}
      choose=${(/** @type {boolean} */ mine) => choose(name, mine)} />`;
    return html`<${Field} ...${{ id, hint, error, changed, below }} label=${labelOf(name)} group=${kind.group}
      required=${attribute.required}><${kind.input} ...${input} /><//>`;
  }, [name, attribute, value, beside, isNew, changed, error, theirs, change, choose]);
}
