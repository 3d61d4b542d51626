// Front page of the documentation, using Bifolio's API: one page, the list of all pages by section, and search.
// It is served on the port after Bifolio's port; ?api= sets another address for the API.
import { DOMPurify, Marked } from "./vendor/markdown.js";

const parameters = new URLSearchParams(location.search);
const API = parameters.get("api") ?? `${location.protocol}//${location.hostname}:${Number(location.port) - 1}`;
const HOME = "README";
const SECTIONS = ["Start", "Editors", "Developers", "Operators", "Reference"];
const SEARCH_DELAY_MS = 150;

const pages = document.getElementById("pages");
const main = document.getElementById("page");
const search = document.getElementById("search");
const markdown = new Marked({ gfm: true });

async function get(path) {
  const response = await fetch(API + path);
  const body = await response.json();
  if (!response.ok) throw new Error(body.error.message);
  return body;
}

function element(name, properties, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

function address(id, anchor = "") {
  const query = new URLSearchParams(parameters);
  query.set("page", id);
  return `?${query}${anchor}`;
}

// GitHub's anchor for a heading, as used by links between pages.
function slug(text) {
  return text.trim().toLowerCase().replace(/[^\p{L}\p{N}\p{M}_\- ]/gu, "").replaceAll(" ", "-");
}

function link(page) {
  const current = page.documentId === (parameters.get("page") ?? HOME);
  const made = element("a", { href: address(page.documentId), title: page.summary ?? "" }, page.title);
  if (current) made.setAttribute("aria-current", "page");
  return element("li", {}, made);
}

function list(sections) {
  pages.replaceChildren(
    ...sections.flatMap(([title, found]) => [element("h2", {}, title), element("ul", {}, ...found.map(link))]),
  );
}

function show(page) {
  document.title = `${page.title} · Bifolio documentation`;
  main.innerHTML = DOMPurify.sanitize(markdown.parse(page.body));
  for (const heading of main.querySelectorAll("h1, h2, h3, h4")) heading.id = slug(heading.textContent);
  for (const made of main.querySelectorAll("a[href]")) {
    const [, id, anchor] = /^([\w-]+)\.md(#.*)?$/.exec(made.getAttribute("href")) ?? [];
    if (id) made.href = address(id, anchor);
    else if (/^\.\.?\//.test(made.getAttribute("href"))) made.replaceWith(...made.childNodes); // A file in the repository.
  }
  document.getElementById(decodeURIComponent(location.hash.slice(1)))?.scrollIntoView();
}

const all = await get("/api/pages?fields=title,section,order,summary&sort=order&pagination[pageSize]=100");
const byId = new Map(all.data.map((page) => [page.documentId, page]));
const bySection = () => SECTIONS.map((name) => [name, all.data.filter((page) => page.section === name)]);

let timer;
search.addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(async () => {
    const words = search.value.trim();
    const found = words && (await get(`/search?${new URLSearchParams({ q: words, type: "page", limit: "20" })}`));
    if (words !== search.value.trim()) return; // The user has typed more in the meantime.
    if (!words) return list(bySection());
    const hits = found.data.map((hit) => byId.get(hit.documentId)).filter(Boolean);
    list([[`${hits.length} found`, hits]]);
  }, SEARCH_DELAY_MS);
});

list(bySection());
try {
  show((await get(`/api/pages/${encodeURIComponent(parameters.get("page") ?? HOME)}`)).data);
} catch (error) {
  main.textContent = error.message;
}
