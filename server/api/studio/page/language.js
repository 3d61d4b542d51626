/**
 * The language of the studio's own texts, and the functions that translate them.
 *
 * Modules contain the English texts: t`Sends ${what} to ${url}` looks up the message "Sends {0} to {1}". Each other
 * language has a file in messages/, which maps English messages to translations. This module waits for the file. All
 * modules that import it run afterwards, so their constants can be translated too. A message that is missing in the
 * file is shown in English.
 *
 * To add a language, see docs/studio.md.
 */

import { FILES } from "./base.js";
import { idsOf } from "./message-id.js";

/** The languages by their codes, each with its own name. @type {Record<string, string>} */
export const LANGUAGES = { en: "English", de: "Deutsch" };
const SOURCE = "en"; // the language of the texts in the modules
const KEY = "bifolio.language";

/** @typedef {Partial<Record<Intl.LDMLPluralRule, string>> & {other: string}} PluralForms */

const preferred = chosenLanguage() || browserLanguage();
/** @type {Record<string, string | PluralForms> | null} */
const messages = preferred === SOURCE ? null : await load(preferred);

/** The code of the language that is shown. */
export const LANGUAGE = messages ? preferred : SOURCE;
/** The locale for dates and numbers: the browser's variant of the language, such as en-GB, or else the language. */
export const LOCALE = navigator.languages.find((tag) => languageOf(tag) === LANGUAGE) ?? LANGUAGE;

const numbers = new Intl.NumberFormat(LOCALE);
const pluralRules = new Intl.PluralRules(LANGUAGE);
const sourceRules = new Intl.PluralRules(SOURCE);
/** The texts of the templates that were used, because most of them are used many times. */
const texts = new WeakMap();

/**
 * Translate a text, used as a tag: t`Sends ${what} to ${url}`. If all values are simple, returns a string. If some are
 * elements, returns an array of children.
 * @param {TemplateStringsArray} strings
 * @param {any[]} values
 * @returns {any}
 */
export function t(strings, ...values) {
  const id = texts.has(strings) ? "" : idOf(strings);
  const text = texts.get(strings) ?? translated(id, id);
  texts.set(strings, text);
  return fill(text, values);
}

/** Return the translation of a message, if there is one. @param {string} id */
function messageOf(id) {
  if (!messages) return undefined;
  const [long, short] = idsOf(id);
  return messages[id] ?? messages[long] ?? messages[short];
}

/**
 * Return the text for a number: plural(3, {one: "{0} document", other: "{0} documents"}). {0} is the number, and {1} is
 * the first of the other values. In a file of messages, the English text for `other` stands for all forms.
 * @param {number} count
 * @param {PluralForms} forms  The English texts.
 * @param {any[]} values
 * @returns {any}
 */
export function plural(count, forms, ...values) {
  const message = messageOf(forms.other);
  const isTranslated = typeof message === "object";
  const known = isTranslated ? message : forms;
  const rules = isTranslated ? pluralRules : sourceRules;
  return fill(known[rules.select(count)] ?? known.other, [counted(count), ...values]);
}

/**
 * Return the translation of a text that comes from the server, or the text itself if there is none.
 * @param {string} id
 * @param {string} text
 */
export function translated(id, text) {
  const message = messageOf(id);
  return typeof message === "string" ? message : text;
}

/** @param {number} count */
export const counted = (count) => numbers.format(count);

/** Tell the browser and screen readers which language the page has. */
export function showLanguage() {
  document.documentElement.lang = LANGUAGE;
}

/**
 * Show the studio in another language. This reloads the page, which keeps the unsaved work of a form.
 * @param {string} language  One of LANGUAGES.
 */
export function chooseLanguage(language) {
  try {
    localStorage.setItem(KEY, language);
  } catch {
    return; // The browser stores nothing, so a reload would show the same language again.
  }
  location.reload();
}

/** Return the language that the user has chosen in this browser, or "" if none. */
function chosenLanguage() {
  try {
    const kept = localStorage.getItem(KEY) ?? "";
    return Object.hasOwn(LANGUAGES, kept) ? kept : "";
  } catch {
    return "";
  }
}

function browserLanguage() {
  return navigator.languages.map(languageOf).find((language) => Object.hasOwn(LANGUAGES, language)) ?? SOURCE;
}

/** @param {string} tag  A language tag such as "de-AT". */
function languageOf(tag) {
  return tag.split("-")[0].toLowerCase();
}

/** Request the messages of a language. Returns null if this fails. @param {string} language */
async function load(language) {
  try {
    const answer = await fetch(new URL(`messages/${language}.json`, FILES));
    return answer.ok ? await answer.json() : null;
  } catch {
    return null;
  }
}

/** @param {TemplateStringsArray} strings */
function idOf(strings) {
  return strings.reduce((id, part, i) => `${id}{${i - 1}}${part}`).replace(/\s*\n\s*/g, " ");
}

/** @param {string} message @param {any[]} values */
function fill(message, values) {
  const parts = message.split(/\{(\d+)\}/).map((part, i) => (i % 2 ? values[Number(part)] : part));
  const shown = parts.flat().filter((part) => part !== "" && part !== null && part !== undefined && part !== false);
  return shown.some((part) => typeof part === "object") ? shown : shown.join("");
}
