// Shows /openapi.json to people. No library and no other request than to this server; text from the document
// becomes text nodes, never markup.
"use strict";

const METHODS = ["get", "post", "put", "delete"];
const at = (id) => document.getElementById(id);
let api = {};
let token = "";

/** An element: el("p", { class: "x" }, "text", child). */
function el(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value !== undefined && value !== false) made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.flat().filter((child) => child !== undefined && child !== null));
  return made;
}

/** Text with `code` in it. */
function prose(text) {
  return String(text ?? "").split("`").map((part, i) => (i % 2 ? el("code", {}, part) : part));
}

function resolve(part) {
  if (!part || !part.$ref) return part ?? {};
  const found = part.$ref.slice(2).split("/").reduce((value, key) => value?.[key], api);
  const { $ref, ...more } = part;
  return { ...found, ...more };
}

const nameOf = (part) => (part?.$ref ? part.$ref.split("/").at(-1) : "");
const headers = () => (token ? { Authorization: `Bearer ${token}` } : {});
const json = (value) => JSON.stringify(value, null, 2);

// --- schemas ----------------------------------------------------------------------------------

/** What a schema takes, in a few words. */
function kind(schema) {
  const own = nameOf(schema);
  if (own) return own;
  const choices = schema.oneOf ?? schema.anyOf;
  if (choices) return [...new Set(choices.map(kind))].join(" or ");
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  if ("const" in schema) return JSON.stringify(schema.const);
  const types = [schema.type ?? "any value"].flat();
  const told = types.map((type) => (type === "array" ? `list of ${schema.items ? kind(schema.items) : "any values"}` : type));
  return told.join(" or ") + (schema.format ? ` (${schema.format})` : "");
}

/** The objects that a schema leads to, to be opened. */
function inner(schema) {
  if (schema.$ref) return [schema];
  if (schema.properties) return [schema];
  if (schema.items) return inner(schema.items);
  return (schema.oneOf ?? schema.anyOf ?? schema.allOf ?? []).flatMap(inner);
}

function bounds(schema) {
  const names = { minLength: "at least", maxLength: "at most", minimum: "from", maximum: "to", minItems: "from", maxItems: "to" };
  return Object.entries(names).flatMap(([key, word]) => (schema[key] === undefined ? [] : [`${word} ${schema[key]}`])).join(", ");
}

/** The members of an object, each with what it leads to, made when it is opened. */
function members(schema) {
  const whole = resolve(schema);
  const list = el("dl", { class: "schema" });
  for (const [name, part] of Object.entries(whole.properties ?? {})) {
    const needed = (whole.required ?? []).includes(name);
    const described = part.description ?? resolve(part).description;
    list.append(
      el("dt", {}, el("code", {}, name), " ", el("span", { class: "kind" }, kind(part), bounds(part) && `, ${bounds(part)}`),
        needed ? el("span", { class: "needed" }, " required") : ""),
      el("dd", {}, prose(described), opened(part)),
    );
  }
  if (!list.children.length) {
    const further = inner(whole);
    return further.length && further[0] !== whole ? further.map((each) => opened(each, nameOf(each))) : el("p", { class: "kind" }, kind(whole));
  }
  return list;
}

function opened(schema, label) {
  return inner(schema).map((each) => {
    const box = el("details", {}, el("summary", {}, label || nameOf(each) || "members"));
    box.addEventListener("toggle", () => box.children.length === 1 && box.append(...[members(each)].flat()), { once: true });
    return box;
  });
}

function shown(content) {
  return Object.entries(content ?? {}).flatMap(([type, media]) => {
    const examples = media.examples ?? ("example" in media ? { example: { value: media.example } } : {});
    return [
      el("p", {}, el("code", {}, type), " ", el("span", { class: "kind" }, kind(media.schema ?? {}))),
      Object.keys(media.schema ?? {}).length ? members(media.schema) : "",
      ...Object.entries(examples).map(([name, example]) =>
        el("details", {}, el("summary", {}, `Example: ${name}`), el("pre", { tabindex: "0" }, el("code", {}, json(resolve(example).value)))),
      ),
    ].flat();
  });
}

// --- operations -------------------------------------------------------------------------------

function parameterList(parameters) {
  const list = el("dl", {});
  for (const each of parameters) {
    list.append(
      el("dt", {}, el("code", {}, each.name), " ", el("span", { class: "kind" }, `${each.in}, ${kind(each.schema)}`),
        each.required ? el("span", { class: "needed" }, " required") : ""),
      el("dd", {}, prose(each.description), opened(each.schema)),
    );
  }
  return list;
}

function answers(operation) {
  return Object.entries(operation.responses).map(([status, reference]) => {
    const response = resolve(reference);
    const good = status < "400";
    return el("details", { open: status < "300" },
      el("summary", {}, el("code", {}, status), " ", el("span", { class: good ? "" : "error" }, ...prose(response.description))),
      ...shown(response.content));
  });
}

/** How an example of a parameter is written in a query. */
function queryOf(parameters) {
  const pairs = [];
  const put = (name, value) => {
    if (value !== null && typeof value === "object") {
      for (const [key, item] of Object.entries(value)) put(`${name}[${key}]`, item);
    } else pairs.push(`${name}=${encodeURIComponent(value)}`);
  };
  for (const { name, in: place, example, style } of parameters) {
    if (place !== "query" || example === undefined || name === "pagination") continue;
    if (Array.isArray(example) && style === "form") pairs.push(`${name}=${example.map(encodeURIComponent).join(",")}`);
    else put(name, example);
  }
  return pairs.join("&");
}

function trial(path, method, operation, parameters) {
  const key = `${method}-${path}`.replace(/\W+/g, "-");
  const fields = parameters.filter((each) => each.in === "path").map((each) => {
    const input = el("input", { id: `${key}-${each.name}`, required: true });
    return { name: each.name, input, row: el("div", { class: "row" }, el("label", { for: input.id }, each.name), input) };
  });
  const query = el("input", { id: `${key}-query`, class: "wide", value: queryOf(parameters), spellcheck: "false" });
  const media = operation.requestBody?.content?.["application/json"];
  const body = media && el("textarea", { id: `${key}-body`, rows: "8", spellcheck: "false" }, json(media.example ?? {}));
  const out = el("div", { role: "status" });
  const send = async (event) => {
    event.preventDefault();
    let url = fields.reduce((text, { name, input }) => text.replace(`{${name}}`, encodeURIComponent(input.value)), path);
    if (query.value) url += `?${query.value}`;
    const options = { method: method.toUpperCase(), headers: headers() };
    if (body) Object.assign(options, { body: body.value, headers: { ...options.headers, "Content-Type": "application/json" } });
    const began = performance.now();
    try {
      const answer = await fetch(url.replace(/^\//, ""), options);
      const text = await answer.text();
      const told = `${answer.status} ${answer.statusText}, ${Math.round(performance.now() - began)} ms`;
      let pretty = text;
      try { pretty = json(JSON.parse(text)); } catch { /* not JSON: as it is */ }
      out.replaceChildren(el("p", { class: answer.ok ? "" : "error" }, told), el("pre", { tabindex: "0" }, el("code", {}, curl(url, options)), "\n\n", el("code", {}, pretty)));
    } catch (error) {
      out.replaceChildren(el("p", { class: "error" }, String(error)));
    }
  };
  return [
    el("h3", {}, "Try it"),
    el("form", { onsubmit: send, class: "trial" },
      ...fields.map((field) => field.row),
      el("div", { class: "row wide" }, el("label", { for: query.id }, "query"), query),
      body ? [el("label", { for: body.id }, "body"), body] : "",
      el("button", { type: "submit" }, `Send ${method.toUpperCase()}`)),
    out,
  ];
}

function curl(url, options) {
  const quoted = (text) => `'${String(text).replaceAll("'", "'\\''")}'`;
  const given = Object.entries(options.headers).map(([name, value]) => ` -H ${quoted(`${name}: ${name === "Authorization" ? "Bearer $TOKEN" : value}`)}`);
  const words = given.join("").replace("'Authorization: Bearer $TOKEN'", '"Authorization: Bearer $TOKEN"');
  return `curl -g -X ${options.method}${words}${options.body ? ` -d ${quoted(options.body)}` : ""} ${quoted(new URL(url, location.origin))}`;
}

function describe(path, method, operation) {
  const parameters = (operation.parameters ?? []).map(resolve);
  const open = operation.security.some((each) => !Object.keys(each).length);
  const multipart = operation.requestBody && !operation.requestBody.content["application/json"];
  return [
    el("p", { class: "kind" }, open ? "Needs no credentials." : "Needs a token."),
    ...(parameters.length ? [el("h3", {}, "Parameters"), parameterList(parameters)] : []),
    ...(operation.requestBody ? [el("h3", {}, "Body"), ...shown(operation.requestBody.content)] : []),
    el("h3", {}, "Answers"),
    ...answers(operation),
    ...(multipart ? [] : trial(path, method, operation, parameters)),
  ];
}

function card(path, method, operation) {
  const name = operation.operationId;
  const box = el("details", { class: "operation", id: name },
    el("summary", {}, el("h3", {}, el("span", { class: `method ${method.toUpperCase()}` }, method.toUpperCase()),
      el("span", { class: "path" }, path), el("span", { class: "what" }, operation.summary))));
  const fill = () => box.children.length === 1 && box.append(el("div", { class: "body" }, ...describe(path, method, operation)));
  box.addEventListener("toggle", fill);
  return box;
}

// --- the page ---------------------------------------------------------------------------------

function build() {
  document.title = `${api.info.title}: API`;
  at("title").textContent = `${api.info.title}: API`;
  at("about").replaceChildren(...prose(api.info.description));
  const groups = new Map(api.tags.map((tag) => [tag.name, { tag, found: [] }]));
  for (const [path, methods] of Object.entries(api.paths)) {
    for (const method of METHODS.filter((each) => each in methods)) {
      const operation = methods[method];
      groups.get(operation.tags[0]).found.push({ path, method, operation });
    }
  }
  const main = at("main");
  const toc = at("toc");
  main.replaceChildren();
  toc.replaceChildren();
  for (const { tag, found } of groups.values()) {
    const links = found.map(({ path, method, operation }) =>
      el("li", { "data-words": `${method} ${path} ${operation.summary} ${operation.operationId}`.toLowerCase() },
        el("a", { href: `#${operation.operationId}` }, el("span", { class: `method ${method.toUpperCase()}` }, method.toUpperCase()), " ", path)));
    toc.append(el("section", {}, el("h2", {}, tag.name), el("ul", {}, ...links)));
    main.append(el("section", { class: "group", "aria-label": tag.name }, el("h2", {}, tag.name), el("p", {}, ...prose(tag.description)),
      ...found.map(({ path, method, operation }) => card(path, method, operation))));
  }
  filter();
  reveal();
}

/** Show what the search names, in the list and on the page. */
function filter() {
  const wanted = at("search").value.trim().toLowerCase();
  for (const item of document.querySelectorAll("#toc li")) {
    item.hidden = !item.dataset.words.includes(wanted);
    at(item.querySelector("a").hash.slice(1)).hidden = item.hidden;
  }
  for (const section of document.querySelectorAll("#toc section, .group")) {
    section.hidden = ![...section.querySelectorAll("li, .operation")].some((each) => !each.hidden);
  }
}

/** Open the operation that the address names. */
function reveal() {
  const found = location.hash && at(decodeURIComponent(location.hash.slice(1)));
  if (found?.tagName === "DETAILS") {
    found.open = true;
    found.scrollIntoView();
  }
}

async function load() {
  const status = at("status");
  status.className = "";
  status.textContent = "Loading…";
  try {
    const answer = await fetch("openapi.json", { headers: headers(), cache: "no-cache" });
    const found = await answer.json();
    if (!answer.ok) throw new Error(found.error?.message ?? answer.statusText);
    api = found;
    build();
    const count = document.querySelectorAll(".operation").length;
    status.textContent = `${count} operations ${token ? "for this token" : "for everyone"}.`;
  } catch (error) {
    status.className = "error";
    status.textContent = `The document can't be shown: ${error.message}`;
  }
}

at("who").addEventListener("submit", (event) => {
  event.preventDefault();
  token = at("token").value.trim();
  load();
});
at("search").addEventListener("input", filter);
addEventListener("hashchange", reveal);
// The page needs no other script, and none of the same origin, such as an uploaded one, may run in it.
const policy = document.createElement("meta");
policy.httpEquiv = "Content-Security-Policy";
policy.content = "script-src 'none'";
document.head.append(policy);
load();
