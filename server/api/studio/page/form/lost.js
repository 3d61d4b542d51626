/** Shows typed values of attributes or content types that no longer exist, so that the user can copy them. */

import { writeJson } from "../json.js";
import { t } from "../language.js";
import { labelOf } from "../text.js";
import { html, useEffect, useState } from "../vendor/preact.js";
import { shown } from "./theirs.js";
import { keep, lostAt, placeOfDeleted } from "./unsaved.js";

/** @typedef {Record<string, any>} Values */

/** @param {{values: Values, discard: (rest: Values) => void}} props */
export function Lost({ values, discard }) {
  const [copied, setCopied] = useState("");
  const names = Object.keys(values);
  const copy = (/** @type {string} */ name) => navigator.clipboard.writeText(textOf(values[name])).then(
    () => setCopied(t`Copied`),
    () => setCopied(t`The browser does not allow copying. Select the text and copy it.`),
  );
  if (!names.length) return null;
  return html`<section class="notice kept" aria-label=${t`Text that was not saved`}>
    ${names.map((name) => html`<div key=${name} role="group" aria-label=${pathLabel(name)}>
      <p class="kept-name">${t`${pathLabel(name)} no longer exists. This text was not saved:`}</p>
      <div class="side-by-value" tabindex="0" role="region" aria-label=${pathLabel(name)}>${shown(values[name])}</div>
      <p class="theirs-choice">
        <button class="button" type="button" onClick=${() => copy(name)}>${t`Copy`}</button>
        <button class="button" type="button" onClick=${() => discard(without(values, name))}>${t`Discard`}</button>
      </p>
    </div>`)}
    <span class="hint" role="status">${copied}</span>
  </section>`;
}

/** @param {string} path  A name, or the path to an attribute in a component. */
const pathLabel = (path) => path.split(".").map(labelOf).join(" › ");

/** @param {Values} values @param {string} name */
const without = (values, name) => Object.fromEntries(Object.entries(values).filter(([other]) => other !== name));

/** @param {any} value */
const textOf = (value) => {
  const text = shown(value);
  return typeof text === "string" ? text : writeJson(value, 2);
};

/**
 * The text that somebody has typed into a document whose content type was deleted.
 * @param {{model: import("../model.js").Model, name: string, id: string, locale: string}} props
 */
export function LostOfDeleted({ model, name, id, locale }) {
  const place = placeOfDeleted(model, name, id, locale);
  const [values, set] = useState(/** @type {Values} */ ({}));
  useEffect(() => set(lostAt(place, {})), [place]); // The form has stored its last text by then.
  const discard = (/** @type {Values} */ lost) => {
    keep(place, { etag: "", base: {}, values: {}, lost });
    set(lost);
  };
  return html`<${Lost} ...${{ values, discard }} />`;
}
