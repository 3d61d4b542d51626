/**
 * The document model of the editor. It has one type of node for each type in `blocks`, so that both can be converted to
 * each other without loss. `was` is the value from which a node was made; it preserves unknown properties.
 */

import { fileAddress } from "../api.js";
import { parseJson, writeJson } from "../json.js";
import { t } from "../language.js";
import { pictureIn, showSmaller } from "../pictures.js";
import { Schema } from "../vendor/prosemirror.js";

/** @typedef {import("../vendor/prosemirror.js").Node} Node */

const was = { default: null };
/** @type {import("../pictures.js").Place} */
const PICTURE_PLACE = { width: 420, height: 330, fit: "inside" }; // as in blocks.css
const children = "(list_item | sublist | other)+";

/**
 * Return a function that reads a node's attribute from an element that was copied from the editor.
 * @param {string} name
 */
const carried = (name) => (/** @type {HTMLElement} */ element) => {
  try {
    const value = parseJson(element.dataset.node ?? "");
    return typeof value === "object" && value ? { [name]: value } : false;
  } catch {
    return false;
  }
};

/**
 * Return a function that renders an unsupported value as a piece of source, which can be moved and removed.
 * @param {string} tag
 * @returns {(node: Node) => any}
 */
const source = (tag) => ({ attrs }) => {
  const text = writeJson(attrs.value, tag === "span" ? 0 : 2);
  return [tag, { class: "blocks-other", "data-node": writeJson(attrs.value), title: t`Unsupported block` }, text];
};

/**
 * Render a picture. If it is on another site, show only its name, because the page may not load it.
 * @param {Node} node
 * @returns {any}
 */
function figure({ attrs: { image } }) {
  const url = fileAddress(String(image.url ?? ""));
  const own = new URL(url).origin === location.origin;
  const alt = String(image.alternativeText ?? "");
  const shown = own ? pictureOf(image, alt) : ["span", { class: "blocks-elsewhere" }, String(image.name ?? url)];
  return ["figure", { class: "blocks-image", "data-node": writeJson(image) }, shown];
}

/**
 * Return an element that shows a picture of the site.
 * @param {Record<string, any>} image
 * @param {string} alt
 */
function pictureOf(image, alt) {
  const element = document.createElement("img");
  const small = image.formats?.small?.url ?? image.url;
  const shown = pictureIn(/** @type {{url: string}} */ (image), PICTURE_PLACE, small);
  for (const [name, value] of Object.entries({ ...shown, alt })) element.setAttribute(name, value);
  element.addEventListener("error", showSmaller, { once: true });
  return element;
}

/** @param {string} name */
const sizes = (name) => [1, 2, 3, 4, 5, 6].map((level) => ({ tag: `${name}${level}`, attrs: { level } }));
/** @param {string} [context] */
const lists = (context) => [
  { tag: "ul", context, attrs: { format: "unordered" } },
  { tag: "ol", context, attrs: { format: "ordered" } },
];
const listAttrs = { format: { default: "unordered" }, indentLevel: { default: undefined }, was };
/** @param {Node} node */
const listTag = ({ attrs }) => (attrs.format === "ordered" ? "ol" : "ul");

/** The marks of texts. Their names are those of the properties in `blocks`. */
export const MARKS = ["bold", "italic", "underline", "strikethrough", "code"];

export const schema = new Schema({
  nodes: {
    doc: { content: "block+" },
    paragraph: { group: "block", content: "inline*", attrs: { was }, parseDOM: [{ tag: "p" }], toDOM: () => ["p", 0] },
    heading: {
      group: "block",
      content: "inline*",
      attrs: { level: { default: 2 }, was },
      defining: true,
      parseDOM: sizes("h"),
      toDOM: ({ attrs }) => [`h${attrs.level}`, 0],
    },
    quote: {
      group: "block",
      content: "inline*",
      attrs: { was },
      defining: true,
      parseDOM: [{ tag: "p", context: "quote/", skip: true, priority: 60 }, { tag: "blockquote" }],
      toDOM: () => ["blockquote", 0],
    },
    code_block: {
      group: "block",
      content: "text*",
      marks: [...MARKS, "extra"].join(" "),
      attrs: { language: { default: undefined }, was },
      code: true,
      defining: true,
      parseDOM: [{ tag: "pre", preserveWhitespace: "full" }],
      toDOM: () => ["pre", { spellcheck: "false" }, ["code", 0]],
    },
    list: {
      group: "block",
      content: children,
      attrs: listAttrs,
      parseDOM: lists(),
      toDOM: (node) => [listTag(node), 0],
    },
    // A nested list. In the HTML, it is inside an item of the outer list, so that screen readers announce it correctly.
    sublist: {
      content: children,
      attrs: listAttrs,
      parseDOM: ["list/", "sublist/", "list_item/"].flatMap(lists).map((rule) => ({ ...rule, priority: 60 })),
      toDOM: (node) => ["li", { class: "blocks-nested" }, [listTag(node), 0]],
    },
    list_item: {
      content: "inline*",
      attrs: { was },
      defining: true,
      parseDOM: [
        { tag: "p", context: "list_item/", skip: true, priority: 60 },
        { tag: "li.blocks-nested", skip: true, priority: 60 },
        { tag: "li" },
      ],
      toDOM: () => ["li", 0],
    },
    image: {
      group: "block",
      attrs: { image: { default: {} }, was },
      draggable: true,
      parseDOM: [{ tag: "figure[data-node]", getAttrs: carried("image") }],
      toDOM: figure,
    },
    other: {
      group: "block",
      attrs: { value: { default: null } },
      atom: true,
      draggable: true,
      parseDOM: [{ tag: "div.blocks-other", getAttrs: carried("value") }],
      toDOM: source("div"),
    },
    text: { group: "inline" },
    line_break: {
      group: "inline",
      inline: true,
      selectable: false,
      linebreakReplacement: true,
      attrs: { text: { default: "\n" } },
      leafText: () => "\n",
      parseDOM: [{ tag: "br" }],
      toDOM: () => ["br"],
    },
    other_inline: {
      group: "inline",
      inline: true,
      attrs: { value: { default: null } },
      atom: true,
      parseDOM: [{ tag: "span.blocks-other", getAttrs: carried("value") }],
      toDOM: source("span"),
    },
  },
  marks: {
    // `nth` distinguishes adjacent links. `was` is the value from which the link was made.
    link: {
      attrs: { url: { default: "" }, nth: { default: null }, was },
      inclusive: false,
      parseDOM: [{ tag: "a[href]", getAttrs: linkOf }],
      toDOM: ({ attrs: { url } }) => ["a", { href: isLink(url) ? url : null, title: url, rel: "noopener" }, 0],
    },
    bold: {
      parseDOM: [
        // Some word processors wrap a whole document in a <b> element that is not bold.
        { tag: "b", getAttrs: (element) => !/(^|[;\s])font-weight:\s*(normal|400)/.test(styleOf(element)) && null },
        { tag: "strong" },
        styled(/(^|[;\s])font-weight:\s*(bold|[6-9]00)/),
      ],
      toDOM: () => ["strong", 0],
    },
    italic: { parseDOM: [{ tag: "i" }, { tag: "em" }, styled(/font-style:\s*italic/)], toDOM: () => ["em", 0] },
    underline: {
      parseDOM: [{ tag: "u" }, styled(/text-decoration[^;]*:[^;]*underline/)],
      toDOM: () => ["u", 0],
    },
    strikethrough: {
      parseDOM: [{ tag: "s" }, { tag: "del" }, { tag: "strike" }, styled(/text-decoration[^;]*:[^;]*line-through/)],
      toDOM: () => ["s", 0],
    },
    code: { code: true, parseDOM: [{ tag: "code" }, { tag: "tt" }], toDOM: () => ["code", 0] },
    // Further properties of a text.
    extra: {
      attrs: { rest: { default: {} } },
      inclusive: false,
      parseDOM: [{ tag: "span.blocks-extra", getAttrs: carried("rest") }],
      toDOM: ({ attrs: { rest } }) => {
        const said = writeJson(rest);
        const title = Object.keys(rest).some((key) => !MARKS.includes(key)) ? said : null;
        return ["span", { class: "blocks-extra", title, "data-node": said }, 0];
      },
    },
  },
});

/** @param {HTMLElement} element */
function styleOf(element) {
  return element.dataset.style ?? "";
}

/**
 * Return a parsing rule for elements with a certain style. Pasted styles are in `data-style`, because the page's policy
 * does not apply them.
 * @param {RegExp} pattern
 */
function styled(pattern) {
  return {
    tag: "[data-style]",
    consuming: false,
    getAttrs: (/** @type {HTMLElement} */ element) => pattern.test(styleOf(element)) && null,
  };
}

/** @param {HTMLElement} element */
function linkOf(element) {
  const url = element.getAttribute("href") ?? "";
  return isLink(url) ? { url } : false;
}

/**
 * Return whether the server accepts a URL: a harmless protocol, or a path on the site.
 * @param {string} url
 */
export const isLink = (url) => /^(\/|(https?|ftp|mailto|tel):)/i.test(url);
