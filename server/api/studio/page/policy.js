/**
 * Restricts the page's Content-Security-Policy, once the page runs, to the folder with its own files.
 *
 * The policy in the header is `'self'`, because the server does not know under which host name and path it is reached.
 * But uploaded files have the same origin: a script among them must not run here, even if an attacker manages to insert
 * markup into the page.
 */

import { FILES } from "./base.js";

// Host names that a policy can contain together with a path. IPv6 addresses such as [::1] are not allowed there.
const NAME = /^[a-z0-9-]+(\.[a-z0-9-]+)*$/i;

/** Allow only scripts and styles from this page's own folder. Policies can be added but not removed. */
export function narrowPolicy() {
  if (!NAME.test(FILES.hostname)) return;
  const folder = FILES.href.replaceAll(";", "%3B").replaceAll(",", "%2C");
  const meta = document.createElement("meta");
  meta.httpEquiv = "Content-Security-Policy";
  meta.content = `script-src ${folder}; style-src ${folder}`;
  document.head.append(meta);
}
