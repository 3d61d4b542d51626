/** The dialog in which the user selects the live site or a branch, or creates a branch. */

import { useStudio } from "../context.js";
import { Dialog } from "../dialog.js";
import { Icon } from "../icons.js";
import { t } from "../language.js";
import { Link, SERVED, addressHere, navigate } from "../router.js";
import { Empty, Failure, Loading } from "../states.js";
import { ago, timestamp } from "../text.js";
import { html, useState } from "../vendor/preact.js";
import { NewBranch } from "./new-branch.js";
import { documentsText, useBranches } from "./requests.js";

const FEW = 7; // branches that need no search field

/** @param {{close: () => void}} props */
export function SwitchDialog({ close }) {
  const { model } = useStudio();
  const { list, error, retry } = useBranches(true);
  const [text, setText] = useState("");
  const [creating, create] = useState(false);
  const shown = (list ?? []).filter(({ name, served }) => {
    return served || name.toLowerCase().includes(text.trim().toLowerCase());
  });
  const open = (/** @type {string} */ name) => {
    close();
    navigate(addressHere({ branch: name, at: "" }));
  };
  if (creating && list) return html`<${NewBranch} list=${list} close=${close} done=${open} />`;
  return html`<${Dialog} label=${t`Switch branch`} close=${close} class="switch-dialog">
    <h2 class="dialog-title">${t`Switch branch`}</h2>
    <p class="hint">${t`On a branch, you prepare changes that visitors do not see until the branch is merged.`}</p>
    ${list && list.length > FEW && html`<input class="input" type="search" aria-label=${t`Find a branch`}
      placeholder=${t`Find a branch`} value=${text}
      onInput=${(/** @type {any} */ event) => setText(event.currentTarget.value)} />`}
    ${!list && (error ? html`<${NoList} error=${error} again=${retry} />` : html`<${Loading} />`)}
    ${list && html`<ul class="switch-list">${shown.map((branch) => html`<li key=${branch.name}>
      <${Choice} branch=${branch} version=${model.version} close=${close} /></li>`)}</ul>`}
    ${list && shown.every(({ served }) => served) && html`<p role="status">
      ${list.length > 1 ? t`No branch has this name.` : t`There are no branches yet.`}</p>`}
    <div class="dialog-actions">
      <button class="button" type="button" onClick=${close}>${t`Cancel`}</button>
      ${model.mayBranch("create") && list && html`<button class="button" type="button" onClick=${() => create(true)}>
        ${t`New branch`}</button>`}
    </div>
  <//>`;
}

/** @param {{error: any, again: () => void}} props */
export function NoList({ error, again }) {
  return error.status === 409
    ? html`<${Empty} title=${t`No branches available`}>${error.message}.<//>`
    : html`<${Failure} error=${error} again=${again} />`;
}

/**
 * @param {{branch: import("./requests.js").Branch, version: import("../router.js").Version, close: () => void}} props
 */
function Choice({ branch, version, close }) {
  const { name, served, date, author, problem } = branch;
  const isCurrent = served ? !version.branch && !version.at : version.branch === name;
  const to = addressHere(served ? SERVED : { branch: name, at: "" });
  return html`<${Link} class="switch-option" to=${to} aria-current=${isCurrent ? "true" : undefined}
    onClick=${(/** @type {MouseEvent} */ event) => follow(event, isCurrent, close)}>
    <span class="switch-mark">${isCurrent && html`<${Icon} name="check" />`}</span>
    <span class="switch-name">${served ? t`Live site` : name}</span>
    <span class="switch-note">${served
      ? t`branch ${name}`
      : problem ?? html`${author.name}, <time datetime=${date} title=${timestamp(date)}>${ago(date)}</time>
          ${" · "}${documentsText(branch)}`}</span>
  <//>`;
}

/**
 * Close the dialog when a link in it is followed in this tab. A link to the version that is shown leads nowhere.
 * @param {MouseEvent} event @param {boolean} isCurrent @param {() => void} close
 */
function follow(event, isCurrent, close) {
  if (event.button || event.metaKey || event.ctrlKey || event.shiftKey) return;
  if (isCurrent) event.preventDefault();
  close();
}
