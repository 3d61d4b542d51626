/** The message at the bottom of every page if the server is not reachable or has been updated. */

import { t } from "../language.js";
import { html } from "../vendor/preact.js";
import { useReachable } from "./connection.js";
import { Reload } from "./parts.js";
import { useUpdated } from "./version.js";

export function ConnectionNotice() {
  const reachable = useReachable();
  const updated = useUpdated();
  const shown = reachable ? updated && "is-updated" : "is-lost";
  return html`<p class=${`connection ${shown || ""}`} role="status">
    ${!reachable && t`No connection. Your changes stay in this page, and saving works again when the server is back.`}
    ${reachable && updated && html`${t`The studio was updated. Save your work, then reload.`}
      ${" "}<${Reload} class="text-button" />`}
  </p>`;
}
