/** The list of branches, with the author and time of the last commit and the number of changed documents. */

import { addressTo } from "../addresses.js";
import { useStudio } from "../context.js";
import { t } from "../language.js";
import { Link, addressOf, navigate } from "../router.js";
import { Empty, Failure, Loading } from "../states.js";
import { BRANCHES, useMessage } from "../store/messages.js";
import { ago, timestamp } from "../text.js";
import { useHeading } from "../site/heading.js";
import { html, useState } from "../vendor/preact.js";
import { Discard } from "./discard.js";
import { NewBranch } from "./new-branch.js";
import { documentsText, useBranches } from "./requests.js";

export function BranchesPage() {
  const { model } = useStudio();
  useHeading(model, t`Branches`);
  const may = model.mayBranch("find");
  const { list, error, retry } = useBranches(may);
  const [creating, create] = useState(false);
  const message = useMessage(BRANCHES);
  const others = list?.filter((branch) => !branch.served);
  return html`<div class="page site-page branches-page">
    <header class="page-head">
      <h1 tabindex="-1">${t`Branches`}</h1>
      ${list && model.mayBranch("create") && html`<button class="button primary" type="button"
        onClick=${() => create(true)}>${t`New branch`}</button>`}
    </header>
    <p class="site-told" role="status">${message.text}</p>
    ${!may && html`<${NoBranches} />`}
    ${may && !list && error && (error.status === 409
      ? html`<${Empty} title=${t`This site does not use git`}>${error.message}.<//>`
      : html`<${Failure} error=${error} again=${retry} />`)}
    ${may && !list && !error && html`<${Loading} />`}
    ${others?.length === 0 && html`<${Empty} title=${t`No branches yet`}>
      ${t`On a branch, you prepare changes that visitors do not see. When they are ready, you publish all of them at
        once by merging the branch.`}<//>`}
    ${others && others.length > 0 && html`<ul class="branches">
      ${others.map((branch) => html`<${Row} key=${branch.name} branch=${branch} />`)}
    </ul>`}
    ${creating && list && html`<${NewBranch} list=${list} close=${() => create(false)}
      done=${(/** @type {string} */ name) => navigate(addressTo("branch", { name }))} />`}
  </div>`;
}

/** The message for users who may not see branches. */
export function NoBranches() {
  return html`<${Empty} title=${t`Your role can't see branches`}>
    ${t`An administrator can grant it with branch: [find] in site.yaml.`}<//>`;
}

/** @param {{branch: import("./requests.js").Branch}} props */
function Row({ branch }) {
  const { model } = useStudio();
  const [discarding, discard] = useState(false);
  const { name, problem } = branch;
  const isHere = model.version.branch === name;
  return html`<li class="branch-row">
    <div class="branch-what">
      <${Link} class="branch-name" to=${addressTo("branch", { name })}>${name}<//>
      <span class="branch-note">${problem ?? html`<${LastChange} branch=${branch} />`}</span>
    </div>
    <span class="branch-count">${documentsText(branch)}</span>
    <div class="branch-actions">
      ${isHere
        ? html`<span class="branch-here">${t`You are here`}</span>`
        : html`<${Link} class="button" to=${addressOf([], {}, { branch: name, at: "" })}>${t`Work on it`}
            <span class="unseen">: ${name}</span><//>`}
      ${mayDiscard(model, branch) && html`<button class="button" type="button" onClick=${() => discard(true)}>
        ${t`Discard`}<span class="unseen"> ${name}</span></button>`}
    </div>
    ${discarding && html`<${Discard} name=${name} close=${() => discard(false)} />`}
  </li>`;
}

/** @param {import("../model.js").Model} model @param {import("./requests.js").Branch} branch */
export const mayDiscard = (model, branch) => model.mayBranch("delete") && !branch.served && !branch.checkedOut;

/** Who changed a branch last, and when. @param {{branch: import("./requests.js").Branch}} props */
export function LastChange({ branch: { author, date } }) {
  const time = html`<time datetime=${date} title=${timestamp(date)}>${ago(date)}</time>`;
  return html`${t`Last change by ${author.name}, ${time}`}`;
}
