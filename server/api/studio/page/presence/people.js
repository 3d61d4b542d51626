/** Shows who else has opened a document: in the page's header, and at the fields that they are in. */

import { isShared } from "../documents/locales.js";
import { labelOf } from "../text.js";
import { showNotice, useMessage } from "../store/messages.js";
import { createContext, html, useContext, useEffect, useMemo, useRef, useState } from "../vendor/preact.js";

/** @typedef {import("./presence.js").Person} Person */

const MOST = 3; // people who are named; of more, how many they are
const HUES = 6;
const PLACE = "people"; // of messages

/** The names of the people in each field, by the field's path. @type {Map<string, string[]>} */
const NOBODY = new Map();
export const FieldsOfOthers = createContext(NOBODY);

/** @param {Person} person */
const nameOf = ({ kind, name }) => (kind === "owner" ? "Owner of this machine" : name);

/**
 * Return the people in each field, by the field's path. People in another locale are only included for shared
 * attributes.
 * @param {import("../documents/form.js").Subject} subject
 * @param {Person[]} people
 */
export function useFieldsOfOthers({ type, locale }, people) {
  return useMemo(() => {
    /** @type {Map<string, string[]>} */
    const found = new Map();
    for (const person of people) {
      for (const { field, locale: theirs } of person.at) {
        const top = field?.split(".")[0] ?? "";
        const attribute = type.attributes[top];
        if (!field || !attribute || (theirs !== locale && !isShared(type, attribute))) continue;
        // A component in a list may be collapsed, so the person is also shown at the list.
        for (const path of new Set([field, top])) found.set(path, [...(found.get(path) ?? []), nameOf(person)]);
      }
    }
    return found;
  }, [type, locale, people]);
}

/**
 * The people who have opened the document. Screen readers announce who comes and goes, and who is in the user's field.
 * @param {{people: Person[], subject: import("../documents/form.js").Subject, field: string | null}} props
 */
export function People({ people, subject, field }) {
  const others = useFieldsOfOthers(subject, people);
  const message = useMessage(PLACE);
  const before = useRef(/** @type {string[]} */ ([]));
  const names = people.map(nameOf);
  const here = (field && others.get(field)) || [];
  useEffect(() => {
    const came = names.filter((name) => !before.current.includes(name));
    const left = before.current.filter((name) => !names.includes(name));
    before.current = names;
    if (came.length) showNotice(PLACE, `${listed(came)} ${came.length > 1 ? "are" : "is"} also here`);
    else if (left.length) showNotice(PLACE, `${listed(left)} ${left.length > 1 ? "have" : "has"} left`);
  }, [names.join("\n")]);
  useEffect(() => {
    if (here.length) showNotice(PLACE, `${listed(here)} ${here.length > 1 ? "are" : "is"} also editing this field`);
  }, [here.join("\n")]);
  const named = people.slice(0, MOST);
  return html`<div class="people">
    ${people.length > 0 && html`<ul class="people-list" aria-label="Other people here">
      ${named.map((person) => html`<li class="person" key=${nameOf(person)} title=${whereOf(person, subject)}>
        <${Initials} name=${nameOf(person)} /><span class="person-name">${nameOf(person)}</span>
      </li>`)}
      ${people.length > MOST && html`<li class="person" title=${names.slice(MOST).join(", ")}>
        ${people.length - MOST} more</li>`}
    </ul>`}
    <p class="unseen" role="status">${message.text}</p>
  </div>`;
}

/** The people in a field. @param {{path: string}} props */
export function FieldPeople({ path }) {
  const names = useContext(FieldsOfOthers).get(path);
  if (!names) return null;
  return html`<span class="field-people">
    <${Initials} name=${names[0]} />
    <span class="field-people-names">${listed(names)} ${names.length > 1 ? "are" : "is"} here</span>
  </span>`;
}

/** @param {{name: string}} props */
function Initials({ name }) {
  const hue = [...name].reduce((sum, letter) => sum * 31 + (letter.codePointAt(0) ?? 0), 0) % HUES;
  const words = name.split(/[\s._-]+/).filter(Boolean);
  const letters = [words[0], words.length > 1 ? words.at(-1) : ""].map((word) => [...(word ?? "")][0] ?? "");
  return html`<span class=${`initials is-hue-${hue}`} aria-hidden="true">${letters.join("").toUpperCase()}</span>`;
}

/** Return a list of names as text: "Ann", "Ann and Ben", "Ann, Ben and Eve". @param {string[]} names */
function listed(names) {
  return names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}

/** @param {Person} person @param {import("../documents/form.js").Subject} subject */
function whereOf(person, { model, locale }) {
  const places = person.at.map((at) => {
    const language = at.locale !== locale && model.locales.find(({ code }) => code === at.locale)?.name;
    return [at.field && `in ${labelOf(at.field.split(".")[0])}`, language].filter(Boolean).join(" · ");
  });
  return [nameOf(person), ...places.filter(Boolean)].join(", ");
}
