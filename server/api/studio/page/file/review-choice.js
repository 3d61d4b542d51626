/** The user's choice whether to review changes before saving. The browser stores it. */

const KEY = "bifolio.review";

/** Return whether the user wants to review changes before saving. */
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
    // If the browser can't store the choice, changes are saved without a review.
  }
}
