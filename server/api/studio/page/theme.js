/** Light or dark: as the system says, until somebody chooses; the browser remembers what was chosen. */

const KEY = "bifolio.theme";
export const THEMES = ["system", "light", "dark"];

/** The theme that was chosen. */
export function chosenTheme() {
  try {
    const kept = localStorage.getItem(KEY) ?? "";
    return THEMES.includes(kept) ? kept : "system";
  } catch {
    return "system";
  }
}

/** @param {string} theme  One of THEMES. */
export function chooseTheme(theme) {
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // A browser that keeps nothing has it until the page is loaded again.
  }
  showTheme(theme);
}

/** @param {string} theme */
export function showTheme(theme) {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}
