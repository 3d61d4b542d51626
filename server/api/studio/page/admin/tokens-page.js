/** The list of API tokens, with their permissions, expiry and last use. */

import { ask } from "../api.js";
import { useStudio } from "../context.js";
import { Question } from "../dialog.js";
import { t } from "../language.js";
import { useHeading } from "../site/heading.js";
import { Empty, Failure, Loading, Notice } from "../states.js";
import { PEOPLE, clearMessage, showError, showNotice } from "../store/messages.js";
import { useRequest } from "../store/requests.js";
import { ago, timestamp } from "../text.js";
import { html, useState } from "../vendor/preact.js";
import { NewToken } from "./new-token.js";
import { send, sentence } from "./requests.js";
import { PeopleTabs } from "./tabs.js";

/**
 * @typedef {import("./requests.js").Token} Token
 */

export function TokensPage() {
  const { model } = useStudio();
  useHeading(model, t`API tokens`);
  const may = model.maySite("token", "read");
  const { value, error, retry, reload } = useRequest(may ? "tokens" : "", (signal) => ask("tokens", { signal }));
  const [creating, setCreating] = useState(false);
  const [revoking, setRevoking] = useState("");
  const tokens = /** @type {Token[] | undefined} */ (value?.data);
  const revoke = async () => {
    const name = revoking;
    setRevoking("");
    clearMessage(PEOPLE);
    const path = `tokens/${encodeURIComponent(name)}`;
    const answer = await send(path, { method: "DELETE" }, (refused) => showError(PEOPLE, sentence(refused)));
    if (answer) showNotice(PEOPLE, t`The token ${name} was revoked.`);
    await reload();
  };
  return html`<div class="page site-page people-page">
    <header class="page-head">
      <h1 tabindex="-1">${t`API tokens`}</h1>
      ${tokens && model.maySite("token", "create") && html`<button class="button primary" type="button"
        onClick=${() => setCreating(true)}>${t`New token`}</button>`}
    </header>
    <${PeopleTabs} model=${model} current="tokens" />
    <${Notice} place=${PEOPLE} />
    ${!may && html`<${Empty} title=${t`Your role can't see API tokens`}>
      ${t`An administrator can grant it with token: [read].`}<//>`}
    ${may && !tokens && error && html`<${Failure} error=${error} again=${retry} />`}
    ${may && !tokens && !error && html`<${Loading} />`}
    ${tokens?.length === 0 && html`<${Empty} title=${t`No API tokens yet`}>
      ${t`With a token, a website or a script reads and writes this site through the API.`}<//>`}
    ${tokens && tokens.length > 0 && html`<ul class="account-list">
      ${tokens.map((token) => html`<li key=${token.name} class="account-row">
        <span class="account-name">${token.name}</span>
        <span class="account-note">${permissionsText(token)}</span>
        <span class="account-role">${expiryText(token)}</span>
        <span class="account-state">${token.lastUsed ? t`Used ${ago(token.lastUsed)}` : t`Never used`}</span>
        ${token.changeable && model.maySite("token", "revoke") && html`<button class="button" type="button"
          onClick=${() => setRevoking(token.name)}>${t`Revoke`}<span class="unseen"> ${token.name}</span></button>`}
      </li>`)}
    </ul>`}
    ${creating && html`<${NewToken} close=${() => setCreating(false)} changed=${reload} />`}
    ${revoking && html`<${Question} danger title=${t`Revoke ${revoking}?`} label=${t`Revoke`} confirm=${revoke}
      text=${t`Whatever uses this token is rejected from now on. This can't be undone.`}
        close=${() => setRevoking("")} />`}
  </div>`;
}

/** @param {Token} token */
function permissionsText({ type, permissions, branchOnly }) {
  const all = { "full-access": t`Everything`, "read-only": t`Reads all content`, custom: permissions.join(", ") }[type];
  return branchOnly ? t`${all}; writes only to branches` : all;
}

/** @param {Token} token */
function expiryText({ expired, expiresAt }) {
  if (!expiresAt) return t`Does not expire`;
  return `${expired ? t`Expired` : t`Expires`} ${timestamp(expiresAt)}`;
}
