/** Converts `blocks` to a document of the editor and back. Parts that were not edited stay exactly the same. */

import { Fragment } from "../vendor/prosemirror.js";
import { MARKS, schema } from "./schema.js";

/**
 * @typedef {import("../vendor/prosemirror.js").Node} Node
 * @typedef {import("../vendor/prosemirror.js").Mark} Mark
 */

const BLANK = { type: "text", text: "" };
const FORMATS = ["ordered", "unordered"];
const LINES = /(\r\n|\r|\n)/;

/**
 * Functions that return a node's own properties (those other than `children`), by the node's name in the editor.
 * @type {Record<string, (attrs: any) => any>}
 */
const MEMBERS = {
  paragraph: () => ({ type: "paragraph" }),
  heading: ({ level }) => ({ type: "heading", level }),
  quote: () => ({ type: "quote" }),
  code_block: ({ language }) => ({ type: "code", language }),
  list: ({ format, indentLevel }) => ({ type: "list", format, indentLevel }),
  sublist: ({ format, indentLevel }) => ({ type: "list", format, indentLevel }),
  list_item: () => ({ type: "list-item" }),
  image: ({ image }) => ({ type: "image", image }),
};
/** Properties that belong to one type of node. They are removed if a node is changed to another type. */
const OF_TYPES = new Set(["type", "children", "level", "format", "language", "indentLevel", "image"]);

/** @param {any} value */
const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

/**
 * Return the document for a value. If there is no value, the document is empty.
 * @param {any} value
 * @returns {Node}
 */
export function documentOf(value) {
  const blocks = Array.isArray(value) && value.length ? value.map(blockOf) : [schema.node("paragraph")];
  return schema.node("doc", null, blocks);
}

/** @param {any} block */
function blockOf(block) {
  return (isObject(block) && knownBlock(block)) || schema.node("other", { value: block });
}

/**
 * @param {any} block
 * @returns {Node | null}  The node, or null if the block is not supported.
 */
function knownBlock(block) {
  const { type, children, level, format, language, indentLevel } = block;
  if (!Array.isArray(children)) return null;
  if (type === "list") return FORMATS.includes(format) ? listOf("list", block) : null;
  if (type === "image") return isObject(block.image) ? schema.node("image", { image: block.image, was: block }) : null;
  if (type === "code" && !children.every(isText)) return null;
  if (type === "heading" && !/^[1-6]$/.test(String(level))) return null;
  if (!["paragraph", "heading", "quote", "code"].includes(type)) return null;
  const name = type === "code" ? "code_block" : type;
  return schema.node(name, { level, format, language, indentLevel, was: block }, contentOf(children, type === "code"));
}

/** @param {"list" | "sublist"} name @param {any} list @returns {Node | null} */
function listOf(name, list) {
  const { format, indentLevel, children } = list;
  if (!children.length) return null;
  const items = children.map((/** @type {any} */ child) => {
    const inner = isObject(child) && Array.isArray(child.children) ? child : {};
    if (inner.type === "list-item") return schema.node("list_item", { was: child }, contentOf(child.children, false));
    const nested = inner.type === "list" && FORMATS.includes(inner.format) && listOf("sublist", child);
    return nested || schema.node("other", { value: child });
  });
  return schema.node(name, { format, indentLevel, was: list }, items);
}

/** @param {any} child */
const isText = (child) => isObject(child) && child.type === "text" && typeof child.text === "string";
/** @param {any} child */
const isKnownLink = ({ type, url, children }) => {
  return type === "link" && typeof url === "string" && Array.isArray(children) && children.every(isText);
};

/** @type {WeakMap<any[], Fragment>} */
const contents = new WeakMap();

/**
 * Return the content of a block of text. Empty texts are left out, and texts with the same marks are joined.
 * @param {any[]} children
 * @param {boolean} code  Whether line breaks are characters, as in code, instead of nodes.
 */
function contentOf(children, code) {
  const known = contents.get(children);
  if (known) return known;
  const nodes = children.flatMap((child, nth) => {
    if (isText(child)) return textsOf(child, [], code);
    if (!isObject(child) || !isKnownLink(child) || !child.children.some((/** @type {any} */ text) => text.text)) {
      return [schema.node("other_inline", { value: child })];
    }
    const link = schema.mark("link", { url: child.url, nth, was: child });
    return child.children.flatMap((/** @type {any} */ text) => textsOf(text, [link], code));
  });
  const made = Fragment.fromArray(nodes);
  contents.set(children, made);
  return made;
}

/**
 * @param {any} text
 * @param {readonly Mark[]} around
 * @param {boolean} code
 */
function textsOf({ type, text, ...rest }, around, code) {
  let marks = around;
  for (const name of MARKS) {
    if (rest[name] !== true) continue;
    marks = schema.mark(name).addToSet(marks);
    delete rest[name];
  }
  if (Object.keys(rest).length) marks = schema.mark("extra", { rest }).addToSet(marks);
  const parts = code ? [text] : text.split(LINES);
  return parts.filter(Boolean).map((/** @type {string} */ part) => {
    if (code || !LINES.test(part)) return schema.text(part, marks);
    return schema.node("line_break", { text: part }, undefined, marks);
  });
}

/**
 * Return the value for a document. If nothing has changed, this is `original` itself; if the document is empty, null.
 * @param {Node} document
 * @param {any} original
 */
export function blocksOf(document, original) {
  const blocks = document.children.map(valueOf);
  const had = Array.isArray(original) ? original : [];
  if (had.length === blocks.length && blocks.every((block, index) => block === had[index])) return original;
  const [first] = document.children;
  if (document.childCount > 1 || first.type.name !== "paragraph" || first.content.size) return blocks;
  return had.length ? null : original;
}

/** @type {WeakMap<Node, any>} */
const values = new WeakMap();

/** Return the value for a node. It is computed only once. @param {Node} node */
function valueOf(node) {
  if (node.attrs.value !== undefined) return node.attrs.value;
  if (!values.has(node)) values.set(node, withMembers(node, MEMBERS[node.type.name](node.attrs), childrenOf(node)));
  return values.get(node);
}

/** @param {Node} node @returns {any[]} */
function childrenOf(node) {
  const had = node.attrs.was?.children;
  if (node.type.name === "image") return had ?? [BLANK];
  if (node.inlineContent) return inlineValues(node, had);
  const made = node.children.map(valueOf);
  const kept = made.length === had?.length && made.every((child, index) => child === had[index]);
  return kept ? had : made;
}

/**
 * Return a node's properties in their original order, together with its unknown properties.
 * @param {Node} node
 * @param {any} members
 * @param {any[]} children
 */
function withMembers(node, members, children) {
  const had = node.attrs.was ?? {};
  const own = { ...members, children };
  const stays = had.type === own.type;
  if (stays && Object.keys(own).every((key) => own[key] === had[key])) return had;
  const kept = Object.entries(had).filter(([key]) => key in own || stays || !OF_TYPES.has(key));
  const all = { ...Object.fromEntries(kept), ...own };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
}

/** @param {Node} node @param {any} had */
function inlineValues(node, had) {
  const code = node.type.name === "code_block";
  if (Array.isArray(had) && contentOf(had, code).eq(node.content)) return had;
  const made = linked(node.children);
  if (!Array.isArray(had)) return made.length ? made : [BLANK];
  const merged = withUntouched(had, made, code);
  return merged.length ? merged : [BLANK];
}

/** Return the values for texts, with adjacent texts of the same link in one link. @param {readonly Node[]} nodes */
function linked(nodes) {
  /** @type {{link: Mark | undefined, nodes: Node[]}[]} */
  const runs = [];
  for (const node of nodes) {
    const link = node.marks.find(({ type }) => type.name === "link");
    const last = runs.at(-1);
    if (last && (link ? last.link?.eq(link) : !last.link)) last.nodes.push(node);
    else runs.push({ link, nodes: [node] });
  }
  return runs.flatMap(({ link, nodes: run }) => {
    return link ? [linkValue(link, run)] : texts(run);
  });
}

/** @param {Mark} link @param {Node[]} nodes */
function linkValue(link, nodes) {
  const { url, was } = link.attrs;
  const content = Fragment.fromArray(nodes.map((node) => node.mark(link.removeFromSet(node.marks))));
  if (was?.url === url && contentOf(was.children, false).eq(content)) return was;
  return { ...was, type: "link", url, children: texts(nodes) };
}

/** @param {Node[]} nodes @returns {any[]} */
function texts(nodes) {
  /** @type {{marks: readonly Mark[], value: any}[]} */
  const made = [];
  for (const node of nodes) {
    if (node.type.name === "other_inline") {
      made.push({ marks: [], value: node.attrs.value });
      continue;
    }
    const text = node.isText ? node.text : node.attrs.text;
    const last = made.at(-1);
    if (isText(last?.value) && last && sameMarks(last.marks, node.marks)) last.value.text += text;
    else made.push({ marks: node.marks, value: { type: "text", text, ...modifiers(node.marks) } });
  }
  return made.map(({ value }) => value);
}

/** @param {readonly Mark[]} a @param {readonly Mark[]} b */
const sameMarks = (a, b) => a.length === b.length && a.every((mark, index) => mark.eq(b[index]));

/** @param {readonly Mark[]} marks */
function modifiers(marks) {
  const rest = marks.find(({ type }) => type.name === "extra")?.attrs.rest ?? {};
  const said = marks.filter(({ type }) => MARKS.includes(type.name)).map(({ type }) => [type.name, true]);
  return { ...rest, ...Object.fromEntries(said) };
}

/**
 * Restore the unchanged children at both ends of a list that was converted again, including their empty texts. Between
 * them, the changed children have their properties in the original order.
 * @param {any[]} had
 * @param {any[]} made
 * @param {boolean} code
 */
function withUntouched(had, made, code) {
  const head = ends(had, made, code);
  const rest = had.slice(head.had);
  const left = made.slice(head.made);
  const tail = ends(rest.toReversed(), left.toReversed(), code);
  const between = rest.slice(0, rest.length - tail.had);
  const middle = left.slice(0, left.length - tail.made).map((child, index, all) => {
    return all.length === between.length ? inOrderOf(between[index], child) : child;
  });
  const all = [...had.slice(0, head.had), ...middle, ...rest.slice(rest.length - tail.had)];
  // Keep an empty text only if no neighbor is a text, for example next to a link.
  return all.filter((child, index) => !isBlank(child) || ![all[index - 1], all[index + 1]].some(isText));
}

/**
 * Count the children that are the same at the start of both lists, ignoring empty texts in the first list.
 * @param {any[]} had
 * @param {any[]} made
 * @param {boolean} code
 */
function ends(had, made, code) {
  const count = { had: 0, made: 0 };
  for (const child of had) {
    if (!isBlank(child)) {
      const other = made[count.made];
      if (!other || !contentOf([child], code).eq(contentOf([other], code))) break;
      count.made++;
    }
    count.had++;
  }
  return count;
}

/** @param {any} child */
const isBlank = (child) => isText(child) && child.text === "";

/** @param {any} had @param {any} made */
function inOrderOf(had, made) {
  if (!isObject(had) || !isObject(made) || had.type !== made.type) return made;
  const kept = Object.keys(had).filter((key) => key in made);
  return { ...Object.fromEntries(kept.map((key) => [key, made[key]])), ...made };
}
