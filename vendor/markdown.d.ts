// The types of markdown.js, for those who check the studio's modules: `make test-studio` does.
export { default as DOMPurify } from "dompurify";
export { Marked } from "marked";
