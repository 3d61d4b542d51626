/**
 * Keeps the focus on the page: if the focused element is removed, its replacement or a surrounding element gets the
 * focus.
 */

const FOCUSABLE = "a[href], button, input, select, textarea, summary, [contenteditable=true], [tabindex='0']";
const REST_MS = 60; // so long whoever has taken it away may place it somewhere themselves

/**
 * @typedef {{around: Element, index: number}} Step  An element that contained the focus, and the index of the child
 *   that did.
 */

/**
 * Keep the focus inside a part of the page. Returns a function that ends this.
 * @param {HTMLElement} root
 */
export function keepFocus(root) {
  let last = /** @type {Element | null} */ (null);
  let steps = /** @type {Step[]} */ ([]);
  const note = (/** @type {FocusEvent} */ event) => {
    const target = /** @type {Element} */ (event.target);
    if (target.closest("dialog")) return; // What opened it gets the focus back, or what stands in its place.
    last = target;
    steps = stepsTo(target, root);
  };
  const look = () => {
    if (last && !last.isConnected && document.activeElement === document.body) setTimeout(restore, REST_MS);
  };
  const restore = () => {
    if (!last || last.isConnected || document.activeElement !== document.body) return;
    last = null;
    placeFor(steps)?.focus({ preventScroll: false });
  };
  const observer = new MutationObserver(look);
  root.addEventListener("focusin", note);
  observer.observe(root, { childList: true, subtree: true });
  return () => {
    root.removeEventListener("focusin", note);
    observer.disconnect();
  };
}

/** Return the ancestors of an element, from the inside out. @param {Element} element @param {Element} root */
function stepsTo(element, root) {
  const steps = /** @type {Step[]} */ ([]);
  for (let inner = element; inner !== root && inner.parentElement; inner = inner.parentElement) {
    const around = inner.parentElement;
    steps.push({ around, index: [...around.children].indexOf(inner) });
  }
  return steps;
}

/** Return the element that should get the focus. @param {Step[]} steps @returns {HTMLElement | null} */
function placeFor(steps) {
  for (const { around, index } of steps) {
    if (!around.isConnected) continue;
    if (around.matches("main, .page") || around.querySelector("main")) return around.querySelector("h1");
    const beside = around.children[Math.min(index, around.children.length - 1)];
    const found = (beside && focusableIn(beside)) ?? focusableIn(around);
    if (found) return found;
  }
  return null;
}

/**
 * Return the first focusable element in a part of the page.
 * @param {Element} part
 * @returns {HTMLElement | undefined}
 */
function focusableIn(part) {
  const all = /** @type {HTMLElement[]} */ ([...part.querySelectorAll(FOCUSABLE)]);
  if (part instanceof HTMLElement && part.matches(FOCUSABLE)) all.unshift(part);
  return all.find((one) => !one.matches(":disabled") && one.getClientRects().length > 0);
}
