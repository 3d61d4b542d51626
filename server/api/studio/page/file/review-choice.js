/** Whether changes are looked at before they are saved; the browser remembers it. */

const KEY = "bifolio.review";

/** Whether changes are looked at before they are saved. */
export function reviewsSaves() {
  try {
    return localStorage.getItem(KEY) === "yes";
  } catch {
    return false;
  }
}

/** @param {boolean} wanted */
export function setReviewsSaves(wanted) {
  try {
    localStorage.setItem(KEY, wanted ? "yes" : "no");
  } catch {
    // A browser that keeps nothing saves at once.
  }
}
