/** What a page shows while it is loading, if it is empty, and after an error. */

import { ApiError } from "./api.js";
import { useBack } from "./connection/connection.js";
import { PartError, Reload } from "./connection/parts.js";
import { t } from "./language.js";
import { seenTypes } from "./model.js";
import { useMessage } from "./store/messages.js";
import { html, useEffect, useState } from "./vendor/preact.js";

const SOON_MS = 250; // what takes less is shown without a word about waiting

/** A message that something is loading. It appears only after a while. */
export function Loading({ label = t`Loading` }) {
  const [late, set] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => set(true), SOON_MS);
    return () => clearTimeout(timer);
  }, []);
  return html`<p class="loading" role="status">${late ? `${label}…` : ""}</p>`;
}

/**
 * A placeholder for an empty list or page.
 * @param {{title: string, children?: any}} props
 */
export function Empty({ title, children }) {
  return html`<div class="state">
    <p class="state-title">${title}</p>
    ${children && html`<p class="state-text">${children}</p>`}
  </div>`;
}

/**
 * The page for a content type that does not exist or that the user may not see.
 * @param {{name: string, children?: any}} props
 */
export function NoContent({ name, children }) {
  const label = seenTypes.get(name);
  return html`<div class="page">
    <header class="page-head"><h1 tabindex="-1">${label ?? t`Content not found`}</h1></header>
    ${label
      ? html`<${Empty} title=${t`The content type ${label} was deleted`}>
          ${t`If it still exists, your role can't see it anymore.`}<//>`
      : html`<${Empty} title=${t`“${name}” not found`}>${t`It does not exist, or your role can't see it.`}<//>`}
    ${children}
  </div>`;
}

/**
 * An error message from the server, with a button for trying again. If the server is not reachable, this happens
 * automatically when it is back.
 * @param {{error: any, again?: () => void}} props
 */
export function Failure({ error, again }) {
  useBack(() => error.status === 0 && again?.());
  return html`<div class="state" role="alert">
    <p class="state-title">${titleOf(error)}</p>
    <p class="state-text">${error.message}</p>
    ${error instanceof PartError
      ? html`<${Reload} class="button" />`
      : again && html`<button class="button" type="button" onClick=${again}>${t`Try again`}</button>`}
  </div>`;
}

/** @param {any} error */
function titleOf(error) {
  if (error instanceof PartError) return t`This part of the page could not be loaded`;
  if (!(error instanceof ApiError)) return t`Something went wrong on this page`;
  if (error.status === 0) return t`No connection`;
  if (error.status === 403) return t`Not allowed`;
  if (error.status === 404) return t`Not found`;
  return t`The request failed`;
}

/** The message at a place of the page. @param {{place: string}} props */
export function Notice({ place }) {
  const { text, isError } = useMessage(place);
  return html`<p class=${isError ? "field-error" : "site-told"} role=${isError ? "alert" : "status"}>${text}</p>`;
}
