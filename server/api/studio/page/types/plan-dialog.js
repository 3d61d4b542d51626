/**
 * The dialog that shows what changes would do, before they are made: the changed lines, values that would be lost, and
 * documents that would become invalid.
 *
 * A plan has a version. If a file of the plan changes before the changes are made, the server refuses them, and the
 * dialog shows the new plan.
 */

import { useStudio } from "../context.js";
import { Dialog } from "../dialog.js";
import { Differences } from "../file/diff.js";
import { Loading } from "../states.js";
import { counted } from "../text.js";
import { html, useEffect, useState } from "../vendor/preact.js";
import { makeChanges, planChanges } from "./schemas.js";

const CHANGED = "Content types or documents have changed meanwhile. This is the new plan; check it again.";
const LOST_ANSWER = "The server did not answer, so the change may have been made or not. Check again.";

/**
 * @param {{title: string, changes: import("./schemas.js").Change[], close: () => void, done: () => Promise<void>,
 *   reload: () => Promise<void>}} props
 */
export function PlanDialog({ title, changes, close, done, reload }) {
  const { model } = useStudio();
  const [plan, setPlan] = useState(/** @type {import("./schemas.js").Plan | null} */ (null));
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(true);
  const [lossy, setLossy] = useState(false);
  const lost = plan?.changes.reduce((sum, step) => sum + step.lost, 0) ?? 0;

  /** @param {string} told */
  const load = async (told) => {
    setBusy(true);
    setLossy(false);
    try {
      setPlan(await planChanges(changes));
      setProblem(told);
    } catch (error) {
      setPlan(null);
      setProblem(error.message);
    }
    setBusy(false);
  };
  const apply = async () => {
    if (!plan) return;
    setBusy(true);
    try {
      await makeChanges(changes, plan, lossy);
      await done();
    } catch (error) {
      if (error.status === 412) return void load(CHANGED);
      if (error.status === 0) setPlan(null);
      setProblem(error.status === 0 ? LOST_ANSWER : error.message);
      setBusy(false);
    }
  };
  const again = async () => {
    await reload();
    await load("");
  };
  useEffect(() => void load(""), []);
  const { branch } = model.version;
  return html`<${Dialog} label=${title} close=${close} class="is-wide">
    <h2 class="dialog-title">${title}</h2>
    <p class="hint">${branch ? `This changes the branch ${branch}.` : "This changes the live site."}</p>
    ${busy && !plan && html`<${Loading} label="Planning" />`}
    <p class="field-error types-problem" role="alert">${problem}</p>
    ${plan && html`<${Effects} plan=${plan} />
      <div class="review" tabindex="0" role="region" aria-label="Changed lines">
        <${Differences} files=${plan.files} /></div>
      ${plan.total > plan.files.length && html`<p>And ${counted(plan.total - plan.files.length)} more files.</p>`}
      ${plan.total === 0 && html`<p>This changes nothing.</p>`}
      ${lost > 0 && html`<label class="types-check"><input type="checkbox" checked=${lossy}
        onChange=${() => setLossy(!lossy)} /> Lose ${counted(lost)} ${lost === 1 ? "value" : "values"}</label>`}`}
    <div class="dialog-actions">
      <button class="button" type="button" onClick=${close}>Cancel</button>
      ${!plan && !busy
        ? html`<button class="button primary" type="button" onClick=${again}>Check again</button>`
        : html`<button class="button primary" type="button" disabled=${busy || !plan?.total || (lost > 0 && !lossy)}
            onClick=${apply}>Apply</button>`}
    </div>
  <//>`;
}

/** @param {{plan: import("./schemas.js").Plan}} props */
function Effects({ plan }) {
  const documents = plan.changes.reduce((sum, step) => sum + step.documents, 0);
  /** @type {[string, string[]][]} */
  const groups = [
    ["Also", plan.changes.flatMap(({ notes }) => notes)],
    ["Problems afterwards", plan.changes.flatMap(({ warnings }) => warnings)],
    ["Values that are lost", plan.changes.flatMap(({ losses }) => losses)],
  ];
  return html`<p>${documents === 1 ? "1 document file changes." : `${counted(documents)} document files change.`}</p>
    ${groups.filter(([, lines]) => lines.length).map(([label, lines]) => html`<div class="notice" key=${label}>
      <h3 class="field-label">${label}</h3>
      <ul>${lines.map((line, index) => html`<li key=${index}>${line}</li>`)}</ul>
    </div>`)}`;
}
