/** The page of a branch: what it changes, and how to merge or discard it. */

import { addressTo } from "../addresses.js";
import { useStudio } from "../context.js";
import { plural, t } from "../language.js";
import { Link, SERVED, addressOf } from "../router.js";
import { useHeading } from "../site/heading.js";
import { useCount } from "../site/links.js";
import { Empty, Failure, Loading } from "../states.js";
import { PAGE, useMessage } from "../store/messages.js";
import { html, useMemo, useState } from "../vendor/preact.js";
import { LastChange, NoBranches, mayDiscard } from "./branches-page.js";
import { ChangeList, formAddress } from "./change-list.js";
import { combined, useBranchChanges } from "./changes.js";
import { ConflictForm } from "./conflicts.js";
import { Discard } from "./discard.js";
import { FileList } from "./file-list.js";
import { MediaList } from "./media-list.js";
import { MergeDialog } from "./merge-dialog.js";
import { useMerging } from "./merging.js";
import { useBranches } from "./requests.js";

const UNCOMMITTED_EVERY_MS = 20_000;

/**
 * @typedef {import("./requests.js").Branch} Branch
 */

/** @param {{name: string}} props */
export function BranchPage({ name }) {
  const { model } = useStudio();
  useHeading(model, name);
  const may = model.mayBranch("find");
  const { list, served, error, retry } = useBranches(may);
  const branch = list?.find((one) => one.name === name);
  return html`<div class="page site-page branch-page">
    <header class="page-head branch-head">
      <p class="document-type"><${Link} to=${addressTo("branches")}>${t`Branches`}<//></p>
      <h1 tabindex="-1">${name}</h1>
      ${branch && html`<p class="branch-note">${branch.problem ?? html`<${LastChange} branch=${branch} />`}</p>`}
    </header>
    ${!may && html`<${NoBranches} />`}
    ${may && !list && (error
      ? html`<${Failure} error=${error} again=${retry} />`
      : html`<${Loading} />`)}
    ${list && !branch && html`<${Empty} title=${t`This branch does not exist`}>
      ${t`It may have been merged and discarded.`} <${Link} to=${addressTo("branches")}>
        ${t`Go to the list of branches`}<//><//>`}
    ${branch?.served && html`<${Empty} title=${t`This is the live site`}>
      ${t`Its changes are public. To prepare changes, create another branch.`}<//>`}
    ${branch && !branch.served && html`<${Content} branch=${branch} served=${served}
      mark=${list?.find((one) => one.served)?.commit ?? "none"} />`}
  </div>`;
}

/**
 * @param {{branch: Branch, served: string, mark: string}} props  `mark` is the last commit of the served branch.
 */
function Content({ branch, served, mark }) {
  const { model } = useStudio();
  const { name, commit } = branch;
  const message = useMessage(PAGE);
  const { items, hasMore, error, more, retry } = useBranchChanges(model, name, `${mark} ${commit}`);
  const compared = items?.[0].compared;
  const merging = useMerging(name, compared?.to ?? commit);
  const { phase, conflicts } = merging;
  const isMerged = compared !== undefined && compared.from === compared.to;
  const mayCommits = model.mayServed("history", "read") && !model.version.as;
  return html`
    <${Actions} ...${{ branch, served, merging, isMerged, compared }} />
    <p class=${`branch-told ${message.isError ? "is-wrong" : ""}`} role=${message.isError ? "alert" : "status"}>
      ${phase === "unsure"
        ? t`The connection was lost during the merge. When the server is back, this page checks whether it succeeded.`
        : message.text}
      ${merging.isBlocked && mayCommits && html` <${ToUncommitted} />`}</p>
    ${mayCommits && !conflicts && !merging.isBlocked && html`<${Uncommitted} />`}
    ${merging.faults.length > 0 && html`<${Faults} faults=${merging.faults} branch=${name} />`}
    ${conflicts && html`<${ConflictForm} found=${conflicts} branch=${name} compared=${compared}
      isBusy=${phase !== "ready"} cancel=${merging.cancel}
      merge=${merging.resolve} />`}
    ${!conflicts && !items && (error
      ? html`<${Failure} error=${error} again=${retry} />`
      : html`<${Loading} />`)}
    ${!conflicts && items && html`<${Changes} ...${{ items, isMerged, hasMore, more, branch }} />`}`;
}

/** Uncommitted changes of the live site, which the branch lacks. */
function Uncommitted() {
  const count = useCount("history/uncommitted", UNCOMMITTED_EVERY_MS);
  if (!count) return null;
  return html`<p class="site-note">${plural(count, {
    one: "{0} file of the live site has uncommitted changes, which are not on this branch.",
    other: "{0} files of the live site have uncommitted changes, which are not on this branch.",
  })} <${ToUncommitted} /></p>`;
}

function ToUncommitted() {
  return html`<${Link} to=${addressTo("changes", {}, {}, SERVED)}>${t`Go to the uncommitted changes`}<//>`;
}

/** @param {{faults: import("./merging.js").Fault[], branch: string}} props */
function Faults({ faults, branch }) {
  const { model } = useStudio();
  return html`<ul class="branch-faults">${faults.map((fault, i) => html`<li key=${i}>
    ${model.typeNamed(fault.type)
      ? html`<${Link} class="branch-change-open" to=${formAddress(model, fault, branch)}>${fault.documentId}<//>`
      : fault.documentId}: ${fault.text}</li>`)}</ul>`;
}

/**
 * @param {{branch: Branch, served: string, merging: import("./merging.js").Merging, isMerged: boolean,
 *   compared?: import("./changes.js").Compared}} props
 */
function Actions({ branch, served, merging, isMerged, compared }) {
  const { model } = useStudio();
  const [open, setOpen] = useState(/** @type {"" | "merge" | "discard"} */ (""));
  const close = () => setOpen("");
  const { name } = branch;
  const off = !compared || isMerged || merging.phase !== "ready";
  const isHere = model.version.branch === name;
  return html`<div class="branch-page-actions">
    ${model.mayBranch("merge") && served && !merging.conflicts && html`<button class="button primary" type="button"
      aria-disabled=${off ? "true" : undefined} onClick=${() => off || setOpen("merge")}>
      ${merging.phase === "busy" ? t`Merging…` : t`Merge into the live site`}</button>`}
    ${isHere
      ? html`<${Link} class="button" to=${addressTo("branch", { name }, {}, SERVED)}>${t`Go to the live site`}<//>`
      : html`<${Link} class="button" to=${addressOf([], {}, { branch: name, at: "" })}>${t`Work on this branch`}<//>`}
    ${mayDiscard(model, branch) && html`<button class="button" type="button" onClick=${() => setOpen("discard")}>
      ${t`Discard`}</button>`}
    ${branch.checkedOut && html`<span class="hint">${t`This branch is checked out in another folder, so it can only be
      changed and discarded there.`}</span>`}
    ${open === "merge" && compared && html`<${MergeDialog} ...${{ name, compared, close }}
      merge=${merging.merge} />`}
    ${open === "discard" && html`<${Discard} name=${name} close=${close} />`}
  </div>`;
}

/**
 * @param {{items: import("./changes.js").Entry[], isMerged: boolean, hasMore: boolean, more: () => void,
 *   branch: Branch}} props
 */
function Changes({ items, isMerged, hasMore, more, branch: { name, documents } }) {
  const { compared } = items[0];
  const changes = useMemo(() => {
    const all = combined(items.flatMap(({ change }) => change ?? []));
    // The published version may be on the next page.
    return hasMore && all[all.length - 1]?.status === "draft" ? all.slice(0, -1) : all;
  }, [items]);
  const known = useMemo(() => {
    const all = [...new Set(items.map((item) => item.known))];
    return {
      documents: new Map(all.flatMap((one) => [...one.documents])),
      files: new Map(all.flatMap((one) => [...one.files])),
    };
  }, [items]);
  if (isMerged) {
    return html`<${Empty} title=${t`Nothing to merge`}>${t`The live site already has everything on this branch.`}<//>`;
  }
  const others = html`<${FileList} compared=${compared} /><${MediaList} compared=${compared} branch=${name} />`;
  if (!changes.length && (compared.mediaTotal || compared.filesTotal)) return others;
  if (!changes.length) {
    return html`<${Empty} title=${t`No changed documents that you can see`}>
      ${t`The branch has other changes, for example to content types, settings or files.`}<//>`;
  }
  return html`
    <p class="site-note">${plural(documents ?? compared.total, {
      one: "{0} changed document, compared with the live site when the branch began",
      other: "{0} changed documents, compared with the live site when the branch began",
    })}</p>
    <${ChangeList} ...${{ changes, known }} branch=${name} />
    ${hasMore && html`<p><button class="button" type="button" onClick=${more}>${t`Show more changes`}</button></p>`}
    ${others}`;
}
