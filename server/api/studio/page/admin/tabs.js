/** The links between the pages about people: users, roles, tokens and the user's own sessions. */

import { addressTo } from "../addresses.js";
import { t } from "../language.js";
import { Link } from "../router.js";
import { peoplePages } from "../site/links.js";
import { html } from "../vendor/preact.js";

/** @param {{model: import("../model.js").Model, current: string}} props */
export function PeopleTabs({ model, current }) {
  const own = model.caller.kind === "user" ? [{ name: "sessions", label: t`My sessions` }] : [];
  const pages = [...peoplePages(model), ...own];
  if (pages.length < 2) return null;
  return html`<nav class="tabs" aria-label=${t`People`}>
    ${pages.map(({ name, label }) => html`<${Link} key=${name} class="tab" to=${addressTo(name)}
      aria-current=${name === current ? "page" : undefined}>${label}<//>`)}
  </nav>`;
}
