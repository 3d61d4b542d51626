/** Fixes all that is safe, after showing what that changes. */

import { ask } from "../api.js";
import { Dialog } from "../dialog.js";
import { counted } from "../text.js";
import { html, useEffect, useState } from "../vendor/preact.js";

const AT_ONCE = 100;

/** @typedef {import("./problems-page.js").Fix} Fix */

/** @param {{count: number, fix: (fixes: Fix[]) => Promise<void>}} props */
export function FixAll({ count, fix }) {
  const [open, setOpen] = useState(false);
  return html`<button class="button primary" type="button" onClick=${() => setOpen(true)}>
      Fix what is safe (${counted(count)})
    </button>
    ${open && html`<${Question} fix=${fix} close=${() => setOpen(false)} />`}`;
}

/** @param {{fix: (fixes: Fix[]) => Promise<void>, close: () => void}} props */
function Question({ fix, close }) {
  const [fixes, setFixes] = useState(/** @type {Fix[]} */ ([]));
  const [total, setTotal] = useState(0);
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  useEffect(() => {
    ask("problems", { query: { fixable: true, pageSize: AT_ONCE } }).then(
      ({ data, meta }) => {
        setFixes(data.map((/** @type {any} */ problem) => problem.change));
        setTotal(meta.pagination.total);
      },
      (refused) => setError(refused.message),
    );
  }, []);
  const send = () => {
    setBusy(true);
    fix(fixes).then(close, (refused) => {
      setError(refused.message);
      setBusy(false);
    });
  };
  return html`<${Dialog} label="Fix what is safe" close=${close} class="fix-dialog">
    <h2 class="dialog-title">Fix what is safe</h2>
    <p>Only these values change; every other byte of the files stays.</p>
    <ul class="fix-list" tabindex="0" aria-label="Changes">
      ${fixes.map((one) => html`<li key=${`${one.path} ${one.key}`}>
        <span class="site-path">${one.path}</span>
        <span class="fix-values">
          ${one.key}: ${one.before && html`<del>${one.before}</del>`} <ins>${one.after}</ins>
        </span>
      </li>`)}
    </ul>
    ${total > fixes.length && html`<p>
      These are the first ${AT_ONCE} of ${counted(total)}. Fix the others after them.
    </p>`}
    <p class="field-error" role="alert">${error}</p>
    <div class="dialog-actions">
      <button class="button" type="button" onClick=${close}>Cancel</button>
      <button class="button primary" type="button" disabled=${busy || !fixes.length} onClick=${send}>Fix</button>
    </div>
  <//>`;
}
