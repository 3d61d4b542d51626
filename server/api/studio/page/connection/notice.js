/** The sentence below every page that says that the server does not answer. */

import { html } from "../vendor/preact.js";
import { useReachable } from "./connection.js";

export function ConnectionNotice() {
  const reachable = useReachable();
  return html`<p class=${`connection ${reachable ? "" : "is-lost"}`} role="status">
    ${!reachable && "No connection: what you see and type stays, and all goes on when the server is back."}
  </p>`;
}
