/** The color theme, light or dark. By default, it follows the system; the browser stores the user's choice. */

import { t } from "./language.js";

const KEY = "bifolio.theme";
export const THEMES = ["system", "light", "dark"];

export function chosenTheme() {
  try {
    const kept = localStorage.getItem(KEY) ?? "";
    return THEMES.includes(kept) ? kept : "system";
  } catch {
    return "system";
  }
}

/** @param {string} theme  One of THEMES. */
export function themeName(theme) {
  return { system: t`System theme`, light: t`Light theme`, dark: t`Dark theme` }[theme] ?? theme;
}

/** @param {string} theme  One of THEMES. */
export function chooseTheme(theme) {
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // If the browser can't store the choice, it is valid until the page is closed.
  }
  showTheme(theme);
}

/** @param {string} theme */
export function showTheme(theme) {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}
