/** The input for a uid, which can be generated from another attribute. */

import { t } from "../language.js";
import { html, useLayoutEffect, useRef } from "../vendor/preact.js";
import { Line } from "./inputs.js";
import { inSentence, labelOf } from "../text.js";
import { slugOf } from "./slug.js";
import { UNSEEN } from "./values.js";

/**
 * The input for a uid. In a new document, it follows its target attribute until the user edits it.
 * @param {import("./field.js").InputProps & {siblings: Record<string, any>}} props
 */
export function Slug(props) {
  const { attribute, value, change, isNew, siblings } = props;
  const target = attribute.targetField;
  const from = target && siblings[target] !== UNSEEN ? siblings[target] : "";
  const wanted = slugOf(String(from ?? ""));
  const made = useRef(String(value ?? ""));
  // This runs immediately. After the next frame, it could overwrite what the user is typing.
  useLayoutEffect(() => {
    if (isNew && target && wanted !== made.current && (value ?? "") === made.current) change(wanted || null);
    made.current = wanted;
  }, [wanted]);
  if (!target) return html`<${Line} ...${props} />`;
  return html`<div class="with-button">
    <${Line} ...${props} />
    <button class="button" type="button" disabled=${!wanted || wanted === value} onClick=${() => change(wanted)}>
      ${t`Generate from ${inSentence(labelOf(target))}`}
    </button>
  </div>`;
}
