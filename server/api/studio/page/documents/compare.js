/** The panel that compares the draft with the published version, attribute by attribute. */

import { kindOf } from "../form/kinds.js";
import { valuesOf } from "../form/resource.js";
import { Sides } from "../form/theirs.js";
import { same } from "../form/values.js";
import { rowsOf } from "../history/changes.js";
import { Text } from "../history/sides.js";
import { t } from "../language.js";
import { Empty } from "../states.js";
import { labelOf } from "../text.js";
import { html } from "../vendor/preact.js";

/** Types whose values are texts. Words that differ are marked. */
const TEXTS = new Set(["string", "text", "richtext", "blocks"]);

/** @param {import("./panels.js").PanelProps} props */
export function Compare({ subject: { model, type }, editing }) {
  const { version } = editing.state;
  if (!version?.published) return html`<${Empty} title=${t`Not published`}>
    ${t`Nothing is published yet, so there is nothing to compare the draft with.`}<//>`;
  const published = valuesOf({ model, attributes: type.attributes }, version.published);
  const draft = valuesOf({ model, attributes: type.attributes }, version.document);
  const names = Object.keys(type.attributes).filter((name) => {
    return kindOf(type.attributes[name]) && !same(published[name], draft[name]);
  });
  if (!names.length) return html`<${Empty} title=${t`No difference`}>
    ${t`The draft and the published version are the same.`}<//>`;
  return html`<div>
    ${names.map((name) => html`<section class="compare-attribute" key=${name} aria-label=${labelOf(name)}>
      <h3>${labelOf(name)}</h3>
      <${Sides} ...${sidesOf(model, type.attributes[name], published[name], draft[name])} />
    </section>`)}
  </div>`;
}

/**
 * Return the published value and the draft's value as two sides. For texts, the differences are marked.
 * @param {import("../model.js").Model} model
 * @param {import("../model.js").Attribute} attribute
 * @param {any} published
 * @param {any} draft
 */
function sidesOf(model, attribute, published, draft) {
  if (!TEXTS.has(attribute.type)) return { left: [t`Published`, published], right: [t`Draft`, draft] };
  const known = { documents: new Map(), files: new Map() }; // Texts name none.
  const [{ left, right, kind }] = rowsOf({ model, known }, attribute, published, draft);
  const show = (/** @type {import("../history/words.js").Part[]} */ parts) =>
    html`<${Text} parts=${parts} code=${kind === "code"} />`;
  return { left: [t`Published`, left], right: [t`Draft`, right], show };
}
