/** The entries of the command palette: content types, commands, and documents that match a search. */

import { addressTo } from "./addresses.js";
import { ask } from "./api.js";
import { useReachable } from "./connection/connection.js";
import { reviewsSaves, setReviewsSaves } from "./file/review-choice.js";
import { rightsOf } from "./documents/rights.js";
import { LANGUAGE, LANGUAGES, chooseLanguage, t } from "./language.js";
import { navigate } from "./router.js";
import { sitePages } from "./site/links.js";
import { THEMES, chooseTheme, chosenTheme, themeName } from "./theme.js";
import { keyOf, useRequest } from "./store/requests.js";
import { inSentence } from "./text.js";

const TYPING_MS = 150;
const FOUND = 8;
const UNREACHED = t`No connection: the search continues when the server is back.`;

/**
 * @typedef {{id: string, label: string, note: string, run: () => void}} Command
 */

/**
 * Return the commands for the current user, without documents.
 * @param {import("./context.js").Studio} studio
 * @returns {Command[]}
 */
export function commandsFor({ model, signOut }) {
  const pages = model.listed.map((type) => ({
    id: `list-${type.name}`,
    label: type.plural,
    note: type.single ? t`Single page` : t`List`,
    run: () => navigate(addressTo("list", { type: type.name })),
  }));
  const site = sitePages(model).filter(({ off }) => !off).map(({ name, label, note }) => ({
    id: name,
    label,
    note,
    run: () => navigate(addressTo(name)),
  }));
  const made = model.listed.filter((type) => rightsOf(model, type, true).create).map((type) => ({
    id: `new-${type.name}`,
    label: t`New ${inSentence(type.label)}`,
    note: t`Create`,
    run: () => navigate(addressTo("create", { type: type.name })),
  }));
  const themes = THEMES.map((theme) => ({
    id: `theme-${theme}`,
    label: themeName(theme),
    note: theme === chosenTheme() ? t`In use` : t`Appearance`,
    run: () => chooseTheme(theme),
  }));
  const languages = Object.entries(LANGUAGES).map(([code, name]) => ({
    id: `language-${code}`,
    label: name,
    note: code === LANGUAGE ? t`In use` : t`Language`,
    run: () => chooseLanguage(code),
  }));
  const review = {
    id: "review",
    label: reviewsSaves() ? t`Save without review` : t`Review changes before saving`,
    note: t`Saving`,
    run: () => setReviewsSaves(!reviewsSaves()),
  };
  const saving = model.allows("source", "read") ? [review] : [];
  const home = { id: "home", label: t`Recently changed`, note: t`Page`, run: () => navigate(addressTo("home")) };
  const out = { id: "sign-out", label: t`Sign out`, note: t`Session`, run: signOut };
  return [home, ...pages, ...site, ...made, ...saving, ...themes, ...languages, out];
}

/**
 * Return the documents that match a text, as commands that open them. Until the search has finished, the previous
 * matches stay.
 * @param {import("./model.js").Model} model
 * @param {string} text
 * @returns {{matches: Command[], error: string, searching: boolean}}
 */
export function useMatches(model, text) {
  const isReachable = useReachable();
  const key = text && keyOf("search", model, text);
  const { value, error, loading } = useRequest(key, (signal) => find(model, text, signal), { delayMs: TYPING_MS });
  const isLost = Boolean(key) && !isReachable;
  return { matches: value ?? [], error: isLost ? UNREACHED : error?.message ?? "", searching: loading };
}

/**
 * @param {import("./model.js").Model} model
 * @param {string} q
 * @param {AbortSignal} signal
 * @returns {Promise<Command[]>}
 */
async function find(model, q, signal) {
  const drafts = model.listed.some((type) => model.seesDrafts(type));
  const query = { q, limit: FOUND, status: drafts ? "draft" : undefined };
  const { data } = await ask("search", { query, signal });
  return data.flatMap((/** @type {any} */ hit) => {
    const type = model.typeNamed(hit.type);
    if (!type) return [];
    const locale = type.localized && hit.locale !== model.defaultLocale ? hit.locale : "";
    const params = /** @type {Record<string, string>} */ (locale ? { locale } : {});
    return [{
      id: `document-${hit.type}-${hit.documentId}-${hit.locale}`,
      label: hit.title || hit.documentId,
      note: locale ? `${type.label}, ${locale}` : type.label,
      run: () => navigate(addressTo("document", { type: type.name, id: hit.documentId }, params)),
    }];
  });
}
