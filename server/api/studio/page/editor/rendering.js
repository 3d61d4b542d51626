/** Renders Markdown as safe HTML: it can't run scripts, load files from other sites, or change styles. */

import { fileAddress } from "../api.js";
import { DOMPurify, Marked } from "../vendor/markdown.js";

const TAGS = [
  ..."a abbr b blockquote br cite code dd del details dfn dl dt em figcaption figure h1 h2 h3 h4 h5 h6".split(" "),
  ..."hr i img ins kbd li mark ol p pre q s samp small span strong sub summary sup table tbody td tfoot".split(" "),
  ..."th thead time tr u ul var".split(" "),
];
// `class` and `id` are not allowed: they could make the text look like the studio, or like one of its controls.
const ATTRIBUTES = "align alt colspan dir height href lang rowspan src start title width".split(" ");
const SANE = {
  ALLOWED_TAGS: TAGS,
  ALLOWED_ATTR: ATTRIBUTES,
  ALLOW_ARIA_ATTR: false,
  ALLOW_DATA_ATTR: false,
  RETURN_DOM_FRAGMENT: /** @type {const} */ (true),
};
const ELSEWHERE = /^(https?:|mailto:|tel:)/i;
const HERE = new URL(fileAddress("")).origin;

const marked = new Marked({ gfm: true });
marked.use({ renderer: { checkbox: ({ checked }) => (checked ? "☑ " : "☐ ") } });

DOMPurify.addHook("afterSanitizeAttributes", (node) => {
  if (node instanceof HTMLAnchorElement) showLink(node);
  if (node instanceof HTMLImageElement) showImage(node);
});

/**
 * Render Markdown as DOM nodes.
 * @param {string} text
 * @returns {DocumentFragment}
 */
export function rendered(text) {
  return DOMPurify.sanitize(/** @type {string} */ (marked.parse(text)), SANE);
}

/**
 * Open links to other sites and to the site's files in a new tab. Links to the site's pages do nothing here.
 * @param {HTMLAnchorElement} link
 */
function showLink(link) {
  const address = link.getAttribute("href") ?? "";
  if (!address) return;
  link.title ||= address;
  if (ELSEWHERE.test(address)) openBeside(link, address);
  else if (address.startsWith("/uploads/")) openBeside(link, fileAddress(address));
  else link.removeAttribute("href");
}

/** @param {HTMLAnchorElement} link @param {string} address */
function openBeside(link, address) {
  link.href = address;
  link.target = "_blank";
  link.rel = "noopener noreferrer";
}

/**
 * Show images of the site. Images of other sites are replaced by links, because the studio loads nothing from other
 * sites.
 * @param {HTMLImageElement} image
 */
function showImage(image) {
  const address = image.getAttribute("src") ?? "";
  image.loading = "lazy";
  if (address.startsWith("data:")) return;
  const url = urlOf(address);
  image.src = url?.href ?? "";
  if (!url || url.origin === HERE) return;
  const link = image.ownerDocument.createElement(image.closest("a") ? "span" : "a");
  link.textContent = image.alt || url.href;
  if (link instanceof HTMLAnchorElement) openBeside(link, url.href);
  image.replaceWith(link);
}

/** @param {string} address */
function urlOf(address) {
  try {
    return new URL(fileAddress(address));
  } catch {
    return null;
  }
}
