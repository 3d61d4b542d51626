/**
 * Narrows the policy of the page (Content-Security-Policy) once it runs: to the folder of its own files.
 *
 * The header says `'self'`, since the server does not know under which name and path browsers see it. Of the same
 * origin are uploaded files too, and a script among them must not run here even if something gets markup into the page.
 */

import { FILES } from "./base.js";

// The names that a policy can have a path of: those of IPv6, such as [::1], it can't.
const NAME = /^[a-z0-9-]+(\.[a-z0-9-]+)*$/i;

/** Let only files of this page's own folder run and style it. Policies add up, and none can be taken back. */
export function narrowPolicy() {
  if (!NAME.test(FILES.hostname)) return;
  const folder = FILES.href.replaceAll(";", "%3B").replaceAll(",", "%2C");
  const meta = document.createElement("meta");
  meta.httpEquiv = "Content-Security-Policy";
  meta.content = `script-src ${folder}; style-src ${folder}`;
  document.head.append(meta);
}
