/** The log of events, as it grows. */

import { addressTo } from "../addresses.js";
import { ask } from "../api.js";
import { listen } from "../connection/stream.js";
import { useStudio } from "../context.js";
import { t } from "../language.js";
import { Link, navigate } from "../router.js";
import { useHeading } from "../site/heading.js";
import { Empty, Failure, Loading } from "../states.js";
import { useRequest } from "../store/requests.js";
import { ago, counted, labelOf, timestamp } from "../text.js";
import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { KINDS } from "./requests.js";

const SHOWN = 200; // events in the list, and while it is paused
const EXAMINED = 1000; // numbers of events among which those to show are chosen

/**
 * @typedef {object} LoggedEvent
 * @property {number} seq
 * @property {string} event
 * @property {string} createdAt
 * @property {string | null} model
 * @property {string | null} documentId
 * @property {string | null} locale
 * @property {string[] | null} changed
 * @property {string | null} actor
 * @property {string} source
 */

/** @param {{params: URLSearchParams}} props */
export function EventsPage({ params }) {
  const { model } = useStudio();
  useHeading(model, t`Events`);
  const [types, events] = [params.get("types") ?? "", params.get("events") ?? ""];
  const { list, error, retry, isLive, waiting, pause } = useEvents(types, events);
  const choose = (/** @type {Record<string, string>} */ chosen) => {
    const filters = Object.entries({ types, events, ...chosen }).filter(([, value]) => value);
    navigate(addressTo("events", {}, Object.fromEntries(filters)), { replace: true });
  };
  const isPaused = waiting !== null;
  return html`<div class="page site-page people-page">
    <header class="page-head">
      <h1 tabindex="-1">${t`Events`}</h1>
      ${list && html`<button class="button" type="button" aria-pressed=${isPaused} onClick=${pause}>
        ${t`Pause`}</button>`}
    </header>
    <div class="account-filter">
      <select class="select" aria-label=${t`Type`} value=${types}
        onChange=${(/** @type {any} */ event) => choose({ types: event.currentTarget.value })}>
        <option value="">${t`All types`}</option>
        ${model.listed.map((type) => html`<option key=${type.name} value=${type.name}>${type.label}</option>`)}
      </select>
      <select class="select" aria-label=${t`Event`} value=${events}
        onChange=${(/** @type {any} */ event) => choose({ events: event.currentTarget.value })}>
        <option value="">${t`All events`}</option>
        ${KINDS.map(([kind, label]) => html`<option key=${kind} value=${kind}>${label}</option>`)}
      </select>
      <span class="site-note" role="status">${isPaused
        ? (waiting ? t`Paused: ${counted(waiting)} new` : t`Paused`)
        : isLive ? t`Live` : t`Connecting…`}</span>
    </div>
    ${!list && (error ? html`<${Failure} error=${error} again=${retry} />` : html`<${Loading} />`)}
    ${list?.length === 0 && html`<${Empty} title=${types || events ? t`No recent event matches` : t`No events yet`}>
      ${t`New events appear here when content changes.`}<//>`}
    ${list && list.length > 0 && html`<ul class="account-list" aria-label=${t`Events`}>
      ${list.map((event) => html`<${Row} key=${event.seq} event=${event} />`)}
    </ul>`}
  </div>`;
}

/**
 * Return the newest events, newest first. While the list is paused, `waiting` is the number of events to be shown.
 * @param {string} types
 * @param {string} events
 */
function useEvents(types, events) {
  const query = { types, events, newest: EXAMINED, limit: EXAMINED };
  const load = async (/** @type {AbortSignal} */ signal) => {
    const { data } = await ask("events", { query, signal });
    return /** @type {LoggedEvent[]} */ (data).reverse().slice(0, SHOWN);
  };
  const { value, error, retry, reload } = useRequest(`events ${types} ${events}`, load);
  const [come, setCome] = useState(/** @type {LoggedEvent[]} */ ([]));
  const [isLive, setLive] = useState(false);
  const [paused, setPaused] = useState(/** @type {LoggedEvent[] | null} */ (null));
  const again = useRef(reload);
  again.current = reload;
  useEffect(() => {
    setCome([]);
    const selected = new URLSearchParams({ ...(types && { types }), ...(events && { events }) });
    const tell = (/** @type {LoggedEvent | null} */ event) => {
      if (event) setCome((before) => [event, ...before].slice(0, SHOWN));
      else again.current();
    };
    // Between the read and the beginning of the stream, events may have been logged.
    return listen(`${selected}`, tell, () => (setLive(true), void again.current()), () => setLive(false));
  }, [types, events]);
  const all = value && joined(come, value);
  const pause = () => setPaused(paused ? null : (all ?? []));
  const known = new Set((paused ?? []).map(({ seq }) => seq));
  const waiting = paused && all ? all.filter(({ seq }) => !known.has(seq)).length : null;
  return { list: paused ?? all, error, retry, isLive, waiting, pause };
}

/** @param {LoggedEvent[]} come @param {LoggedEvent[]} read @returns {LoggedEvent[]} */
function joined(come, read) {
  const bySeq = new Map([...read, ...come].map((event) => [event.seq, event]));
  return [...bySeq.values()].sort((a, b) => b.seq - a.seq).slice(0, SHOWN);
}

/** What the kinds of events stand for, in words. */
const NAMES = new Map(/** @type {[string, string][]} */ ([
  ...KINDS,
  ["media.create", t`A media file is added`],
  ["media.update", t`A media file is changed`],
  ["media.delete", t`A media file is deleted`],
]));

/** @param {{event: LoggedEvent}} props */
function Row({ event }) {
  const { model } = useStudio();
  const type = event.model ? model.typeNamed(event.model) : undefined;
  const { documentId: id, locale, changed } = event;
  const params = /** @type {Record<string, string>} */ (type?.localized && locale ? { locale } : {});
  const to = type && id && event.event !== "entry.delete" ? addressTo("document", { type: type.name, id }, params) : "";
  const about = [type?.label ?? event.model, id, locale].filter(Boolean).join(" · ");
  return html`<li class="account-row">
    <span class="account-name" title=${event.event}>${NAMES.get(event.event) ?? event.event}</span>
    <span class="account-note">${to ? html`<${Link} to=${to}>${about}<//>` : about}
      ${changed && changed.length > 0 && html` (${changed.map((name) => labelOf(name)).join(", ")})`}</span>
    <span class="account-role">${event.actor ?? SOURCES[event.source] ?? event.source}</span>
    <time class="account-state" datetime=${event.createdAt} title=${timestamp(event.createdAt)}>
      ${ago(event.createdAt)}</time>
  </li>`;
}

/** @type {Record<string, string>} */
const SOURCES = { api: "API", file: t`Edited file`, git: "git" };
