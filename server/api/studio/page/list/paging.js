/** The links to the pages of a list. */

import { Icon } from "../icons.js";
import { t } from "../language.js";
import { Link } from "../router.js";
import { html } from "../vendor/preact.js";

/**
 * @param {{address: (params: URLSearchParams) => string, params: URLSearchParams, pages: number, children?: any}} props
 */
export function Pages({ address, params, pages, children }) {
  const page = Number(params.get("page") ?? 1);
  /** @param {number} number */
  const to = (number) => {
    const changed = new URLSearchParams(params);
    number > 1 ? changed.set("page", String(number)) : changed.delete("page");
    return address(changed);
  };
  return html`<nav class="paging" aria-label=${t`Pages`}>
    <span class="paging-count">${children}</span>
    ${pages > 1 && html`<span class="paging-links">
      <${Step} to=${page > 1 && to(page - 1)} label=${t`Previous page`} icon="left" />
      <span>${t`Page ${page} of ${pages}`}</span>
      <${Step} to=${page < pages && to(page + 1)} label=${t`Next page`} icon="right" />
    </span>`}
  </nav>`;
}

/** @param {{to: string | false, label: string, icon: any}} props */
function Step({ to, label, icon }) {
  if (!to) return html`<span class="icon-button is-off" aria-hidden="true"><${Icon} name=${icon} /></span>`;
  return html`<${Link} class="icon-button" to=${to} aria-label=${label}><${Icon} name=${icon} /><//>`;
}
