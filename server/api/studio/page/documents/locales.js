/** The locales of a document, with links to the other locales. */

import { addressTo } from "../addresses.js";
import { t } from "../language.js";
import { Link } from "../router.js";
import { html } from "../vendor/preact.js";

/**
 * Return whether an attribute of a localized content type has the same value in all locales.
 * @param {import("../model.js").Type} type
 * @param {import("../model.js").Attribute} attribute
 */
export function isShared(type, attribute) {
  const own = attribute.type === "uid" || attribute.type === "relation";
  return type.localized && !own && attribute.pluginOptions?.i18n?.localized !== true;
}

/**
 * @param {{subject: import("./form.js").Subject, state: import("../form/editing.js").State}} props
 */
export function Locales({ subject: { model, type, id, locale }, state }) {
  if (!type.localized || model.locales.length < 2) return null;
  if (!id) return html`<p class="locales"><span class="locale" aria-current="page"><span
    class="unseen">${t`Language`}: </span>${model.localeOf(type, locale)}</span></p>`;
  const known = new Set([...state.others, ...(state.version ? [locale] : [])]);
  return html`<nav class="locales" aria-label=${t`Locales`}>
    ${model.locales.map(({ code, name }) => {
      /** @type {Record<string, string>} */
      const params = code === model.defaultLocale ? {} : { locale: code };
      return html`<${Link} class="locale" key=${code} to=${addressTo("document", { type: type.name, id }, params)}
        aria-current=${code === locale ? "page" : undefined}>
        ${name}${!known.has(code) && html`<span class="hint">${" "}${t`· missing`}</span>`}
      <//>`;
    })}
  </nav>`;
}
