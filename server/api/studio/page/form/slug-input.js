/** The input of a uid, which can be made from another attribute. */

import { html, useLayoutEffect, useRef } from "../vendor/preact.js";
import { Line } from "./inputs.js";
import { labelOf } from "../text.js";
import { slugOf } from "./slug.js";
import { UNSEEN } from "./values.js";

/**
 * A uid. That of a new document follows its target, until it is typed by hand.
 * @param {import("./field.js").InputProps & {siblings: Record<string, any>}} props
 */
export function Slug(props) {
  const { attribute, value, change, isNew, siblings } = props;
  const target = attribute.targetField;
  const from = target && siblings[target] !== UNSEEN ? siblings[target] : "";
  const wanted = slugOf(String(from ?? ""));
  const made = useRef(String(value ?? ""));
  // At once: after the next frame, it could take the place of what is typed by hand meanwhile.
  useLayoutEffect(() => {
    if (isNew && target && wanted !== made.current && (value ?? "") === made.current) change(wanted || null);
    made.current = wanted;
  }, [wanted]);
  if (!target) return html`<${Line} ...${props} />`;
  return html`<div class="with-button">
    <${Line} ...${props} />
    <button class="button" type="button" disabled=${!wanted || wanted === value} onClick=${() => change(wanted)}>
      Generate from ${labelOf(target).toLowerCase()}
    </button>
  </div>`;
}
