/** The user's own sessions. */

import { useStudio } from "../context.js";
import { t } from "../language.js";
import { useHeading } from "../site/heading.js";
import { Empty } from "../states.js";
import { html } from "../vendor/preact.js";
import { SessionList } from "./session-list.js";
import { PeopleTabs } from "./tabs.js";

export function SessionsPage() {
  const { model } = useStudio();
  useHeading(model, t`My sessions`);
  return html`<div class="page site-page people-page">
    <header class="page-head"><h1 tabindex="-1">${t`My sessions`}</h1></header>
    <${PeopleTabs} model=${model} current="sessions" />
    ${model.caller.kind === "user"
      ? html`<${SessionList} path="users/me/sessions" name=${model.caller.name} />`
      : html`<${Empty} title=${t`No sessions`}>${t`Only users have sessions that can be listed.`}<//>`}
  </div>`;
}
