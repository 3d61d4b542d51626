/**
 * The script that the studio sends to a previewed page (connection.js). It runs in a page that does not belong to the
 * studio, so it imports nothing, defines no global names, and sends messages only to the surrounding window.
 *
 * It reads the marks in the page's texts (docs/preview.md), hides them, and stores the source of each element in the
 * attribute `data-strapi-source`. It outlines the elements under the pointer, reports double clicks, and shows text
 * while it is typed. If the script is run again, the previous run is ended.
 */
(/** @param {{parentOrigin: string, accent: string}} config */ function preview({ parentOrigin, accent }) {
  const SOURCE = "data-strapi-source";
  const END = "bifolio-preview-end"; // the event that ends a script which runs already
  const TWICE_MS = 300; // within which a second click makes a double click
  const MARK = /\u200b{4}[\u200b\u200c\u200d\ufeff]{8,}/g;
  const DIGITS = "\u200b\u200c\u200d\ufeff";
  const TELLING = ["alt", "src", "poster", "title", "placeholder", "aria-label"];
  const ATTRIBUTES = [...TELLING, "srcset", "href", "value", "content"];
  const SKIPPED = new Set(["SCRIPT", "STYLE", "NOSCRIPT", "TEMPLATE", "TEXTAREA"]);
  const own = /** @type {any} */ (window); // for the switches that pages written for the reference may set
  const colour = own.STRAPI_HIGHLIGHT_HOVER_COLOR ?? accent;

  /** The text nodes that contained marks, by element. @type {WeakMap<Element, Text>} */
  const texts = new WeakMap();
  const ending = new AbortController();
  const { signal } = ending;

  /** Return the source in a mark, or "" if it is not a valid mark. @param {string} mark */
  function decode(mark) {
    const digits = Array.from(mark.slice(4), (digit) => DIGITS.indexOf(digit)).join("");
    const codes = digits.match(/.{4}/g) ?? [];
    try {
      return String(JSON.parse(codes.map((code) => String.fromCharCode(parseInt(code, 4))).join("")).strapiSource);
    } catch {
      return "";
    }
  }

  /** Return a text without marks, and the source in its first mark. @param {string} text */
  function read(text) {
    const marks = text.match(MARK);
    return marks ? { plain: text.replace(MARK, ""), source: decode(marks[0]) } : null;
  }

  /** @param {Text} node */
  function readText(node) {
    const element = node.parentElement;
    const found = element && !SKIPPED.has(element.tagName) && read(node.data);
    if (!element || !found) return;
    node.data = found.plain;
    if (!found.source) return;
    element.setAttribute(SOURCE, found.source);
    texts.set(element, node);
  }

  /** @param {Element} element @param {string} name */
  function readAttribute(element, name) {
    const found = read(element.getAttribute(name) ?? "");
    if (!found) return;
    element.setAttribute(name, found.plain);
    if (!found.source || !TELLING.includes(name) || element.hasAttribute(SOURCE)) return;
    // The URL of a file refers to the field that contains the file.
    element.setAttribute(SOURCE, found.source.replace(/(^|&)path=([^&]*)\.url(?=&|$)/, "$1path=$2"));
  }

  /** @param {Node} root */
  function readAll(root) {
    if (root instanceof Text) return readText(root);
    if (!(root instanceof Element)) return;
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT);
    for (let node = /** @type {Node | null} */ (root); node; node = walker.nextNode()) {
      if (node instanceof Text) readText(node);
      else for (const name of ATTRIBUTES) readAttribute(/** @type {Element} */ (node), name);
    }
  }

  /** Return the element with a source at which an event occurred. @param {Event} event */
  const elementAt = (event) => {
    const at = event.composedPath().find((target) => target instanceof Element && target.hasAttribute(SOURCE));
    return /** @type {Element | undefined} */ (at);
  };

  /** @param {Element} element */
  const sourceOf = (element) => element.getAttribute(SOURCE) ?? "";

  /** Return all elements that come from the same field. @param {Element} element */
  function sameField(element) {
    const source = sourceOf(element);
    return [...document.querySelectorAll(`[${SOURCE}]`)].filter((other) => sourceOf(other) === source);
  }

  // The outline: a box around all elements from the same field as the element under the pointer.

  const box = document.createElement("div");
  box.setAttribute("aria-hidden", "true");
  Object.assign(box.style, {
    position: "fixed", zIndex: "2147483647", pointerEvents: "none", display: "none", boxSizing: "border-box",
    border: `2px solid ${colour}`, borderRadius: "4px",
  });
  /** @type {Element | undefined} */
  let pointed;

  function outline() {
    const rects = pointed?.isConnected ? sameField(pointed).map((element) => element.getBoundingClientRect()) : [];
    const seen = rects.filter(({ width, height }) => width && height);
    box.style.display = seen.length ? "block" : "none";
    if (!seen.length) return;
    const [left, top] = [Math.min(...seen.map((rect) => rect.left)), Math.min(...seen.map((rect) => rect.top))];
    const [right, bottom] = [Math.max(...seen.map((rect) => rect.right)), Math.max(...seen.map((rect) => rect.bottom))];
    Object.assign(box.style, {
      left: `${left - 4}px`, top: `${top - 4}px`, width: `${right - left + 8}px`, height: `${bottom - top + 8}px`,
    });
  }

  /** @param {Event} event */
  function point(event) {
    pointed = elementAt(event);
    outline();
  }

  // A double click opens the field. After a click on a link, wait for a second click before leaving the page.

  let waiting = 0;
  let passing = false;

  /** @param {MouseEvent} event */
  function click(event) {
    const element = elementAt(event);
    const link = element?.closest("a[href], button, summary, label");
    if (passing || !link || event.button || !event.detail) return;
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    clearTimeout(waiting);
    if (event.detail === 1) waiting = setTimeout(() => pass(/** @type {HTMLElement} */ (event.target)), TWICE_MS);
  }

  /** @param {HTMLElement} target */
  function pass(target) {
    passing = true;
    target.click();
    passing = false;
  }

  /** @param {MouseEvent} event */
  function open(event) {
    const element = elementAt(event);
    if (!element) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    getSelection()?.removeAllRanges();
    const payload = { path: sourceOf(element) };
    parent.postMessage({ type: "strapiFieldFocusIntent", payload }, parentOrigin);
  }

  // Messages from the studio: which field has the focus, and what is typed.

  /** @param {MessageEvent} event */
  function hear(event) {
    if (event.source !== parent || event.origin !== parentOrigin) return;
    const { type, payload } = Object(event.data);
    if (type === "strapiFieldChange") change(Object(payload));
    if (type === "strapiFieldFocus") focus(Object(payload));
  }

  /** Return the elements for a field. @param {string} field @param {string} documentId */
  function elementsOf(field, documentId) {
    return [...document.querySelectorAll(`[${SOURCE}]`)].filter((element) => {
      const source = new URLSearchParams(sourceOf(element));
      const path = source.get("path") ?? "";
      const inside = path === field || (source.get("model") === "plugin::upload.file" && path.startsWith(`${field}.`));
      return inside && (!documentId || source.get("documentId") === documentId);
    });
  }

  /** @param {any} payload */
  function focus({ field, documentId }) {
    pointed = elementsOf(String(field), documentId)[0];
    pointed?.scrollIntoView({ block: "nearest" });
    outline();
  }

  /** @param {any} payload */
  function change({ field, value, previous, type, documentId }) {
    if (type === "blocks") {
      const detail = { field, value }; // Only the page knows how to show it.
      dispatchEvent(new CustomEvent("strapiFieldChange", { detail }));
      return;
    }
    if (typeof field !== "string" || Object(value) === value) return;
    for (const element of elementsOf(field, documentId)) show(element, String(value ?? ""), String(previous ?? ""));
    outline();
  }

  /** @param {Element} element @param {string} value @param {string} previous */
  function show(element, value, previous) {
    const node = texts.get(element);
    if (!node?.isConnected) return;
    const { data } = node;
    node.data = previous && data.endsWith(previous) ? data.slice(0, data.length - previous.length) + value : value;
  }

  document.dispatchEvent(new Event(END));
  document.addEventListener(END, () => ending.abort(), { signal });
  if (!own.STRAPI_DISABLE_STEGA_DECODING) {
    readAll(document.documentElement);
    const observer = new MutationObserver((changes) => {
      for (const { type, target, addedNodes, attributeName } of changes) {
        if (type === "childList") addedNodes.forEach(readAll);
        else if (type === "characterData") readAll(target);
        else readAttribute(/** @type {Element} */ (target), attributeName ?? "");
      }
      outline();
    });
    const what = { childList: true, subtree: true, characterData: true, attributeFilter: ATTRIBUTES };
    observer.observe(document.documentElement, what);
    signal.addEventListener("abort", () => observer.disconnect());
  }
  document.documentElement.append(box);
  signal.addEventListener("abort", () => {
    box.remove();
    clearTimeout(waiting);
  });
  document.addEventListener("pointerover", point, { signal });
  document.documentElement.addEventListener("pointerleave", point, { signal });
  addEventListener("scroll", outline, { signal, capture: true, passive: true });
  addEventListener("resize", outline, { signal });
  addEventListener("click", click, { signal, capture: true });
  addEventListener("dblclick", open, { signal, capture: true });
  addEventListener("message", hear, { signal });
})
