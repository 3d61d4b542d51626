/** Says that nobody can sign in with a password, and offers to allow it. */

import { useStudio } from "../context.js";
import { t } from "../language.js";
import { html, useState } from "../vendor/preact.js";
import { send, sentence } from "./requests.js";
import { CHANGED_MEANWHILE, ReviewDialog } from "./site-file.js";

/** @param {{changed: () => void}} props */
export function SignInNotice({ changed }) {
  const { model } = useStudio();
  const [change, setChange] = useState(/** @type {any} */ (null));
  const [wrong, setWrong] = useState("");
  /** @param {import("../api.js").ApiError} error */
  const refused = (error) => {
    setChange(null);
    setWrong(error.status === 412 ? CHANGED_MEANWHILE : sentence(error));
  };
  const review = async () => {
    setWrong("");
    const roles = await send("roles", {}, refused);
    const held = roles?.data.find((/** @type {any} */ role) => role.name === "public")?.permissions.auth ?? [];
    const data = { permissions: { auth: [...held, "callback"] } };
    if (roles) setChange({ etag: roles.etag, change: { path: "roles/public", data } });
  };
  const may = ["role.find", "role.update", "auth.callback"].every((key) => {
    const [subject, action] = key.split(".");
    return model.mayServed(subject, action);
  });
  return html`<div class="notice">
    <p>${t`Nobody can sign in with a password on this site yet, so the people whom you invite can't either.`}</p>
    ${may
      ? html`<button class="button" type="button" onClick=${review}>${t`Allow signing in with a password`}</button>`
      : html`<p>${t`An administrator can allow it: the role public needs the permission to sign in.`}</p>`}
    <p class="field-error" role="alert">${wrong}</p>
    ${change && html`<${ReviewDialog} ...${change} title=${t`Allow signing in with a password?`} refused=${refused}
      close=${() => setChange(null)} done=${() => {
        setChange(null);
        changed();
      }} />`}
  </div>`;
}
