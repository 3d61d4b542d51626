/** The choice of a role. Roles that can do more than the user can't be chosen. */

import { t } from "../language.js";
import { html } from "../vendor/preact.js";

/**
 * @param {{id: string, value: string, roles: Record<string, boolean>, change: (role: string) => void,
 *   disabled?: boolean}} props
 */
export function RoleSelect({ id, value, roles, change, disabled = false }) {
  const names = value in roles ? Object.keys(roles) : [value, ...Object.keys(roles)];
  return html`<select class="select" id=${id} value=${value} disabled=${disabled}
    onChange=${(/** @type {any} */ event) => change(event.currentTarget.value)}>
    ${names.map((name) => html`<option key=${name} value=${name} disabled=${!roles[name] && name !== value}>
      ${name}${roles[name] || name === value ? "" : ` (${t`can do more than you`})`}</option>`)}
  </select>`;
}
