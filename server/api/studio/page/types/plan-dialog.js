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
import { counted, plural, t } from "../language.js";
import { Loading } from "../states.js";
import { html, useEffect, useState } from "../vendor/preact.js";
import { Flag, Input } from "./inputs.js";
import { makeChanges, planChanges } from "./schemas.js";

const CHANGED = t`Content types or documents have changed meanwhile. This is the new plan; check it again.`;
const LOST_ANSWER = t`The server did not answer, so the change may have been made or not. Check again.`;

/** @typedef {import("./schemas.js").Change} Change */

/**
 * @param {{title: string, changes: Change[], isOutdated?: boolean, back?: () => void, close: () => void,
 *   done: (undo: string, changes: Change[]) => Promise<void>, again: () => Promise<void>}} props  `isOutdated` is
 *   whether the schema has changed since the user began. `again` opens another dialog, for the present state.
 */
export function PlanDialog({ title, changes, isOutdated, back, close, done, again }) {
  const { model } = useStudio();
  const [plan, setPlan] = useState(/** @type {import("./schemas.js").Plan | null} */ (null));
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(true);
  const [values, setValues] = useState(/** @type {Record<string, any>} */ ({}));
  const deleted = plan ? deletedBy(changes, plan) : 0;
  const lost = (plan?.changes.reduce((sum, step) => sum + step.lost, 0) ?? 0) - deleted;
  const isAllowed = (!lost || values.lossy === true) && (!deleted || values.deleted === String(deleted));
  const set = (/** @type {Record<string, any>} */ part) => setValues({ ...values, ...part });

  /** @param {string} told */
  const load = async (told) => {
    setBusy(true);
    setValues({});
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
      await done(await makeChanges(changes, plan, lost + deleted > 0), changes);
    } catch (error) {
      if (error.status === 412) return void load(CHANGED);
      if (error.status === 0) setPlan(null);
      setProblem(error.status === 0 ? LOST_ANSWER : error.message);
      setBusy(false);
    }
  };
  useEffect(() => void load(isOutdated ? CHANGED : ""), []);
  const { branch } = model.version;
  return html`<${Dialog} label=${title} close=${close} class="is-wide">
    <h2 class="dialog-title" tabindex="-1" autofocus aria-describedby="plan-summary">${title}</h2>
    <p class="hint">${branch ? t`This changes the branch ${branch}.` : t`This changes the live site.`}</p>
    ${busy && !plan && html`<${Loading} label=${t`Planning`} />`}
    <p class="field-error types-problem" role="alert">${problem}</p>
    <div id="plan-summary" role="status">${plan && html`<${Summary} plan=${plan} />`}</div>
    ${plan && html`<${Effects} plan=${plan} />
      <div class="review" tabindex="0" role="region" aria-label=${t`Changed lines`}>
        <${Differences} files=${plan.files} /></div>
      ${plan.total > plan.files.length && html`<p>${plural(plan.total - plan.files.length, {
        one: "And {0} more file.", other: "And {0} more files.",
      })}</p>`}
      ${plan.total === 0 && html`<p>${t`This changes nothing.`}</p>`}
      ${lost > 0 && html`<${Flag} values=${values} set=${set} name="lossy"
        label=${plural(lost, { one: "Lose {0} value", other: "Lose {0} values" })} />`}
      ${deleted > 0 && html`<${Input} values=${values} set=${set} name="deleted" inputmode="numeric"
        label=${plural(deleted, {
          one: "To delete {0} document file, type {1}", other: "To delete {0} document files, type {1}",
        }, deleted)} />`}`}
    <div class="dialog-actions">
      ${back && html`<button class="button" type="button" onClick=${() => {
        close();
        back();
      }}>${t`Back`}</button>`}
      <button class="button" type="button" onClick=${close}>${t`Cancel`}</button>
      ${!plan && !busy
        ? html`<button class="button primary" type="button" onClick=${again}>${t`Check again`}</button>`
        : html`<button class="button primary" type="button" disabled=${busy || !plan?.total || !isAllowed}
            onClick=${apply}>${t`Apply`}</button>`}
    </div>
  <//>`;
}

/**
 * Return how many files of documents are deleted together with their content type.
 * @param {Change[]} changes
 * @param {import("./schemas.js").Plan} plan
 */
function deletedBy(changes, plan) {
  return plan.changes.reduce((sum, { lost }, index) => {
    return changes[index]?.operation === "delete-type" ? sum + lost : sum;
  }, 0);
}

/** The numbers of changed files and lost values. @param {{plan: import("./schemas.js").Plan}} props */
function Summary({ plan }) {
  const others = new Set(plan.changes.flatMap(({ files }) => files)).size;
  // Several changes can change the same document, and one change can move it.
  const documents = Math.min(plan.total - others, plan.changes.reduce((sum, step) => sum + step.documents, 0));
  const lost = plan.changes.reduce((sum, step) => sum + step.lost, 0);
  return html`<p>${plural(documents, {
      one: "{0} document file changes.", other: "{0} document files change.",
    })} ${lost > 0 && plural(lost, { one: "{0} loss.", other: "{0} losses." })}</p>`;
}

/** @param {{plan: import("./schemas.js").Plan}} props */
function Effects({ plan }) {
  /** @type {[string, string[]][]} */
  const groups = [
    [t`Also`, plan.changes.flatMap(({ notes }) => notes)],
    [t`Problems afterwards`, plan.changes.flatMap(({ warnings }) => warnings)],
    [t`What is lost`, plan.changes.flatMap(({ losses, lost }) => {
      const more = lost - losses.length;
      return more ? [...losses, t`And ${counted(more)} more`] : losses;
    })],
  ];
  return html`${groups.filter(([, lines]) => lines.length).map(([label, lines]) => html`<div key=${label}
      class="notice types-effects">
      <h3 class="field-label">${label}</h3>
      <ul>${lines.map((line, index) => html`<li key=${index}>${line}</li>`)}</ul>
    </div>`)}`;
}
