/** The switch between the live site and branches, and the notice on every page while a branch is shown. */

import { addressTo } from "../addresses.js";
import { useStudio } from "../context.js";
import { Icon } from "../icons.js";
import { t } from "../language.js";
import { later } from "../later.js";
import { Link, SERVED, addressHere, navigate } from "../router.js";
import { html, useEffect, useState } from "../vendor/preact.js";
import { documentsText, useBranches } from "./requests.js";

const SwitchDialog = later("branches/switch-dialog.js", "SwitchDialog");

export function VersionSwitch() {
  const { model } = useStudio();
  const [open, setOpen] = useState(false);
  if (!model.mayBranch("find") || model.servedAt || model.version.as) return null;
  const { branch, at } = model.version;
  return html`<button class=${`switch ${branch ? "is-branch" : ""}`} type="button" aria-haspopup="dialog"
      onClick=${() => setOpen(true)}>
      <${Icon} name="branch" />
      <span class="side-text"><span class="unseen">
        ${t`Switch branch, now:`}${" "}</span>${branch || at || t`Live site`}</span>
      <${Icon} name="expand" />
    </button>
    ${open && html`<${SwitchDialog} close=${() => setOpen(false)} />`}`;
}

/** The notice that names the version that is shown. It is not shown for the live site. */
export function VersionNotice() {
  const { model } = useStudio();
  const { branch, at, as } = model.version;
  if (as) {
    return html`<p class="past-notice">
      ${t`You see what the role ${html`<strong>${as}</strong>`} would see, as far as you may see it yourself. It is
        read-only.`} <${Link} class="past-link" to=${addressTo("roles", {}, { role: as }, SERVED)}>
      ${t`Go back to the role`}<//></p>`;
  }
  if (at) {
    return html`<p class="past-notice">${t`This is the site at ${html`<strong>${at}</strong>`}. It is
      read-only.`} <${Link} class="past-link" to=${addressHere(SERVED)}>${t`Go to the live site`}<//></p>`;
  }
  return branch && html`<${BranchNotice} name=${branch} />`;
}

/** @param {{name: string}} props */
function BranchNotice({ name }) {
  const { model } = useStudio();
  const may = model.mayBranch("find");
  const { list } = useBranches(may);
  const found = list?.find((branch) => branch.name === name);
  useEffect(() => {
    if (found?.served) navigate(addressHere(SERVED), { replace: true, unguarded: true });
  }, [found?.served]);
  const isGone = list !== undefined && !found;
  return html`<div class="branch-notice" role="region" aria-label=${t`Branch`}>
    <${Icon} name="branch" />
    <p class="branch-notice-text">${isGone
      ? t`The branch ${html`<strong>${name}</strong>`} does not exist anymore. It may have been merged and discarded.`
      : html`${t`You are working on the branch ${html`<strong>${name}</strong>`}. Visitors do not see it.`}
        ${!mayWrite(model) && ` ${t`Your role can't change it.`}`}`}</p>
    <p class="branch-notice-links">
      ${may && !isGone && html`<${Link} to=${addressTo("branch", { name })}>
        ${found ? documentsText(found) : t`Changes`}<//>`}
      <${Link} to=${addressHere(SERVED)}>${t`Go to the live site`}<//>
    </p>
  </div>`;
}

/** @param {import("../model.js").Model} model */
const mayWrite = (model) => model.mayBranch("update");
