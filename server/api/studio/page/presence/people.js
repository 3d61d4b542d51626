/** Shows who else has opened a document: in the page's header, and at the fields that they are in. */

import { isShared } from "../documents/locales.js";
import { plural, t } from "../language.js";
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
const nameOf = ({ kind, name }) => (kind === "owner" ? t`Owner of this machine` : name);

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
    if (came.length) showNotice(PLACE, alsoHere(came));
    else if (left.length) showNotice(PLACE, haveLeft(left));
  }, [names.join("\n")]);
  useEffect(() => {
    if (here.length) showNotice(PLACE, alsoEditing(here));
  }, [here.join("\n")]);
  const named = people.slice(0, MOST);
  return html`<div class="people">
    ${people.length > 0 && html`<ul class="people-list" aria-label=${t`Other people here`}>
      ${named.map((person) => html`<li class="person" key=${nameOf(person)} title=${whereOf(person, subject)}>
        <${Initials} name=${nameOf(person)} /><span class="person-name">${nameOf(person)}</span>
      </li>`)}
      ${people.length > MOST && html`<li class="person" title=${names.slice(MOST).join(", ")}>
        ${t`${people.length - MOST} more`}</li>`}
    </ul>`}
    <p class="unseen" role="status">${message.text}</p>
  </div>`;
}

/** @param {string[]} names */
function alsoHere(names) {
  return plural(names.length, { one: "{1} is also here", other: "{1} are also here" }, listed(names));
}

/** @param {string[]} names */
const haveLeft = (names) => plural(names.length, { one: "{1} has left", other: "{1} have left" }, listed(names));

/** @param {string[]} names */
function alsoEditing(names) {
  const people = listed(names);
  return plural(names.length, {
    one: "{1} is also editing this field",
    other: "{1} are also editing this field",
  }, people);
}

/** @param {string[]} names */
const areHere = (names) => plural(names.length, { one: "{1} is here", other: "{1} are here" }, listed(names));

/** The people in a field. @param {{path: string}} props */
export function FieldPeople({ path }) {
  const names = useContext(FieldsOfOthers).get(path);
  if (!names) return null;
  return html`<span class="field-people">
    <${Initials} name=${names[0]} />
    <span class="field-people-names">${areHere(names)}</span>
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
  return names.length < 2 ? names.join("") : t`${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}

/** @param {Person} person @param {import("../documents/form.js").Subject} subject */
function whereOf(person, { model, locale }) {
  const places = person.at.map((at) => {
    const language = at.locale !== locale && model.locales.find(({ code }) => code === at.locale)?.name;
    return [at.field && t`in the field ${labelOf(at.field.split(".")[0])}`, language].filter(Boolean).join(" · ");
  });
  return [nameOf(person), ...places.filter(Boolean)].join(", ");
}
