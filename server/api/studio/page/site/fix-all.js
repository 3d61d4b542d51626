/** The button that applies all safe fixes, after showing what they change. */

import { ask } from "../api.js";
import { Buttons, Dialog } from "../dialog.js";
import { t } from "../language.js";
import { counted } from "../text.js";
import { clearMessage, showError, useMessage } from "../store/messages.js";
import { useRequest } from "../store/requests.js";
import { html, useState } from "../vendor/preact.js";

const AT_ONCE = 100;
const DIALOG = "fix-all"; // the place of messages

/** @typedef {import("./problems-page.js").Fix} Fix */

/** @param {{count: number, fix: (fixes: Fix[]) => Promise<void>}} props */
export function FixAll({ count, fix }) {
  const [open, setOpen] = useState(false);
  return html`<button class="button primary" type="button" onClick=${() => setOpen(true)}>
      ${t`Apply safe fixes (${counted(count)})`}
    </button>
    ${open && html`<${Question} fix=${fix} close=${() => setOpen(false)} />`}`;
}

/** @param {{fix: (fixes: Fix[]) => Promise<void>, close: () => void}} props */
function Question({ fix, close }) {
  const [busy, setBusy] = useState(false);
  const message = useMessage(DIALOG);
  const { value, error } = useRequest("fixable", (signal) => {
    return ask("problems", { query: { fixable: true, pageSize: AT_ONCE }, signal });
  });
  /** @type {Fix[]} */
  const fixes = (value?.data ?? []).map((/** @type {any} */ problem) => problem.change);
  const total = value?.meta.pagination.total ?? 0;
  const send = () => {
    setBusy(true);
    clearMessage(DIALOG);
    fix(fixes).then(close, (refused) => {
      showError(DIALOG, refused.message);
      setBusy(false);
    });
  };
  return html`<${Dialog} label=${t`Apply safe fixes`} close=${close} class="fix-dialog">
    <h2 class="dialog-title">${t`Apply safe fixes`}</h2>
    <p>${t`Only these values change. The rest of each file stays byte for byte the same.`}</p>
    <ul class="fix-list" tabindex="0" aria-label=${t`Changes`}>
      ${fixes.map((one) => html`<li key=${`${one.path} ${one.key}`}>
        <span class="site-path">${one.path}</span>
        <span class="fix-values">
          ${one.key}: ${one.before && html`<del>${one.before}</del>`} <ins>${one.after ?? "null"}</ins>
        </span>
      </li>`)}
    </ul>
    ${total > fixes.length && html`<p>
      ${t`Showing the first ${AT_ONCE} of ${counted(total)}. Fix these first, then the rest.`}
    </p>`}
    <${Buttons} close=${close} label=${t`Fix`} confirm=${send} disabled=${busy || !fixes.length}
      error=${message.text || error?.message} />
  <//>`;
}
