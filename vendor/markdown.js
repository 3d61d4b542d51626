// What the studio's modules import to show Markdown: a parser, and what makes its HTML harmless.
export { default as DOMPurify } from "dompurify";
export { Marked } from "marked";
