/** Stores unsaved changes in the browser while the user types, and offers them when the document is opened again. */

import { t } from "../language.js";
import { labelOf, timestamp } from "../text.js";
import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { lostInside, reshaped } from "./reshape.js";
import { Sides } from "./theirs.js";
import { forget, keep, readKept } from "./unsaved.js";
import { same } from "./values.js";

const REST_MS = 300; // typing is kept once it rests for as long

/**
 * @param {import("./resource.js").FormResource} resource
 * @param {any} editing
 */
export function useKeeping(resource, { state, update }) {
  const { place } = resource;
  const [offer, set] = useState(/** @type {import("./unsaved.js").Kept | null} */ (null));
  const ready = state.phase === "ready";
  const { base, values, lost, version } = state;
  const latest = useRef(() => {});
  latest.current = () => {
    // What is offered is not replaced by what is typed, before somebody has chosen.
    if (ready && !offer) keep(place, { etag: version?.etag ?? "", base, values, lost });
  };

  useEffect(() => {
    if (!ready) return;
    const kept = readKept(place);
    if (kept && differing(kept, values).length) set(kept);
    else if (kept && !Object.keys(lost).length) forget(place);
  }, [ready, place]);
  useEffect(() => {
    const write = () => latest.current();
    const timer = setTimeout(write, REST_MS);
    addEventListener("pagehide", write);
    return () => {
      clearTimeout(timer);
      removeEventListener("pagehide", write);
    };
  }, [ready, offer, place, base, values, lost]);
  useEffect(() => () => latest.current(), []); // The content type may have been deleted while somebody typed.

  const take = () => {
    if (offer) {
      const restored = reshaped(resource, offer.values, base);
      const more = lostInside(resource, offer.base, offer.values);
      update({ values: { ...values, ...restored }, lost: { ...lost, ...more } });
    }
    set(null);
  };
  const drop = () => {
    forget(place);
    set(null);
  };
  return { offer, take, drop, base };
}

/**
 * Return the stored values that differ from those in the form.
 * @param {import("./unsaved.js").Kept} kept
 * @param {Record<string, any>} values
 */
function differing(kept, values) {
  return Object.keys(kept.values).filter((name) => name in values && !same(values[name], kept.values[name]));
}

/** @param {{keeping: ReturnType<typeof useKeeping>, values: Record<string, any>}} props */
export function KeptNotice({ keeping: { offer, take, drop, base }, values }) {
  if (!offer) return null;
  const names = differing(offer, values);
  return html`<section class="notice kept" aria-label=${t`Unsaved work`}>
    <p>${t`${html`<strong>${t`There are unsaved changes`}</strong>`}, from ${timestamp(offer.at)}.`}</p>
    ${names.map((name) => html`<div key=${name}>
      <p class="kept-name">${labelOf(name)}${!same(offer.base[name], base[name]) && html`<span class="hint">
        ${" "}${t`· changed by another person since`}</span>`}</p>
      <${Sides} left=${[t`In the document`, values[name]]} right=${[t`Not saved`, offer.values[name]]} />
    </div>`)}
    <p class="theirs-choice">
      <button class="button" type="button" onClick=${take}>${t`Restore`}</button>
      <button class="button" type="button" onClick=${drop}>${t`Discard`}</button>
    </p>
  </section>`;
}
