// Parses the answers for all documents of a site with the schemas of `bifolio types --zod`, and requires that
// each damaged answer fails. The module is compiled for the site.
import assert from "node:assert/strict";
import * as made from "./bifolio.js";

const { BIFOLIO_URL: url, BIFOLIO_TOKEN: token } = process.env;
// The tests ask for types that only the running site knows.
type Make = (type: string, query?: unknown) => { parse(value: unknown): unknown; safeParse(value: unknown): { success: boolean } };
const { one, list } = made as unknown as { one: Make; list: Make };
const collections = JSON.parse(process.env["COLLECTIONS"] ?? "{}") as { [plural: string]: string };
const pageSize = process.env["PAGE_SIZE"] ?? "100";
const singles = JSON.parse(process.env["SINGLES"] ?? "[]") as string[];

const QUERIES: [string, { [key: string]: unknown }][] = [
  ["", {}],
  ["populate=*", { populate: "*" }],
  ["populate=*&status=draft", { populate: "*", status: "draft" }],
  ["locale=*&pagination[withCount]=false", { locale: "*", pagination: { withCount: false } }],
  ["pagination[start]=1&pagination[limit]=7", { pagination: { start: 1, limit: 7 } }],
];

async function get(path: string): Promise<any> {
  const answer = await fetch(`${url}/api/${path}`, { headers: { Authorization: `Bearer ${token}` } });
  assert.ok(answer.ok || answer.status === 404, `${path}: ${await answer.clone().text()}`);
  return answer.ok ? answer.json() : undefined;
}

/** Yields copies of an answer, each with one wrong or missing value that the schema describes. */
function* damaged(answer: any): Generator<any> {
  const document = Array.isArray(answer.data) ? answer.data[0] : answer.data;
  if (document === undefined) return;
  for (const [name, value] of Object.entries(document as { [name: string]: unknown })) {
    for (const wrong of [undefined, typeof value === "object" && value !== null ? 5 : [["wrong"]]]) {
      const copy = structuredClone(answer);
      const target = Array.isArray(copy.data) ? copy.data[0] : copy.data;
      if (wrong === undefined) delete target[name];
      else target[name] = wrong;
      yield [name, copy];
    }
  }
}

let parsed = 0, refused = 0;
const anything: string[] = [];
for (const [plural, type] of Object.entries(collections)) {
  for (const [text, query] of QUERIES) {
    const answer = await get(`${plural}?${text}${text.includes("pagination") ? "" : `&pagination[pageSize]=${pageSize}`}`);
    const schema = list(type, query);
    schema.parse(answer);
    parsed += answer.data.length;
    for (const [name, copy] of damaged(answer)) {
      if (schema.safeParse(copy).success) anything.push(`${type}.${name}`);
      else refused += 1;
    }
  }
}
for (const type of singles) {
  for (const [text, query] of QUERIES.slice(0, 3)) {
    const answer = await get(`${type}?${text}`);
    if (answer === undefined) continue;
    const schema = one(type, query);
    schema.parse(answer);
    parsed += 1;
    for (const [name, copy] of damaged(answer)) {
      if (schema.safeParse(copy).success) anything.push(`${type}.${name}`);
      else refused += 1;
    }
  }
}
console.log(JSON.stringify({ parsed, refused, anything: [...new Set(anything)] }));
