/** The permissions of a role: a table of content types and actions, and lists of the other actions. */

import { useStudio } from "../context.js";
import { t } from "../language.js";
import { html } from "../vendor/preact.js";
import { SUBJECTS, actionLabel, isGranted, subjectLabel } from "./requests.js";

const ACTIONS = ["find", "findOne", "create", "update", "delete", "readDraft", "updateDraft"];
const HELP = [
  ["find", t`See lists of documents. Without “See drafts”, only published ones.`],
  ["findOne", t`Open a document.`],
  ["create", t`Create documents, and publish them at once.`],
  ["update", t`Change documents, publish and unpublish them.`],
  ["delete", t`Delete documents.`],
  ["readDraft", t`See documents and changes that are not published.`],
  ["updateDraft", t`Create, change and discard drafts, but not publish them. People who write need “List”, “Open”,
    “See drafts” and “Change drafts”.`],
];

/**
 * @param {{role: import("./requests.js").Role, actions: Record<string, string[]>, mayUpdate: boolean,
 *   edits: import("./requests.js").Edits, toggle: (key: string, granted: boolean) => void}} props
 */
export function PermissionTable({ role, actions, mayUpdate, edits, toggle }) {
  const { model } = useStudio();
  const types = Object.keys(actions).filter((subject) => !(subject in SUBJECTS) || isType(model, subject));
  const others = Object.keys(SUBJECTS).filter((subject) => subject in actions && !isType(model, subject));
  const box = { role, mayUpdate, edits, toggle };
  return html`<details class="permission-help"><summary>${t`What the actions allow`}</summary><dl>
    ${HELP.map(([action, text]) => html`<dt key=${action}>${actionLabel(action)}</dt><dd>${text}</dd>`)}
  </dl></details>
  <div class="permissions-scroll" tabindex="0" role="region" aria-label=${t`Permissions for content`}>
    <table class="permissions">
      <caption class="unseen">${t`What the role ${role.name} may do with each content type`}</caption>
      <thead><tr>
        <th scope="col">${t`Content type`}</th>
        ${ACTIONS.map((action) => html`<th key=${action} scope="col">${actionLabel(action)}</th>`)}
      </tr></thead>
      <tbody>
        ${types.map((subject) => html`<tr key=${subject}>
          <th scope="row">${subjectLabel(model, subject)}</th>
          ${ACTIONS.map((action) => html`<td key=${action}>
            ${actions[subject].includes(action) && hasDrafts(model, subject, action)
              ? html`<${Box} ...${box} subject=${subject} action=${action}
                  label=${`${actionLabel(action)}: ${subjectLabel(model, subject)}`} />`
              : html`<span class="permissions-none" aria-label=${t`Does not apply`}>–</span>`}
          </td>`)}
        </tr>`)}
      </tbody>
    </table>
  </div>
  <div class="permission-groups">
    ${others.map((subject) => html`<fieldset key=${subject} class="permission-group">
      <legend>${SUBJECTS[subject]}</legend>
      ${actions[subject].map((action) => html`<label key=${action} class="permission-choice">
        <${Box} ...${box} subject=${subject} action=${action} /> ${actionLabel(action)}</label>`)}
    </fieldset>`)}
  </div>`;
}

/**
 * @param {{role: import("./requests.js").Role, subject: string, action: string, label?: string, mayUpdate: boolean,
 *   edits: import("./requests.js").Edits, toggle: (key: string, granted: boolean) => void}} props
 */
function Box({ role, subject, action, label, mayUpdate, edits, toggle }) {
  const { model } = useStudio();
  const key = `${subject}.${action}`;
  const before = isGranted(role, key);
  const granted = edits[key] ?? before;
  const may = mayUpdate && model.mayServed(subject, action);
  return html`<input type="checkbox" class=${granted === before ? "" : "is-changed"} aria-label=${label}
    checked=${granted} disabled=${!may} title=${may || !mayUpdate ? "" : t`You don't have this permission yourself`}
    onChange=${(/** @type {any} */ event) => toggle(key, event.currentTarget.checked)} />`;
}

/** @param {import("../model.js").Model} model @param {string} subject */
const isType = (model, subject) => model.types.some(({ name }) => name === subject);

/** @param {import("../model.js").Model} model @param {string} subject @param {string} action */
function hasDrafts(model, subject, action) {
  const type = model.types.find(({ name }) => name === subject);
  return !type || type.drafts || !action.endsWith("Draft");
}
