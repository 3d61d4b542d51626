/** The link to what a role would see: the studio as that role, read-only. */

import { addressTo } from "../addresses.js";
import { t } from "../language.js";
import { Link, SERVED } from "../router.js";
import { html } from "../vendor/preact.js";

/** @param {{role: import("./requests.js").Role}} props */
export function RolePreview({ role }) {
  return html`<${Link} class="button" to=${addressTo("home", {}, {}, { ...SERVED, as: role.name })}>
    ${t`See the site as ${role.name}`}<//>`;
}
