// What `bifolio types --zod` writes for the repository's own site: the inferred types are those of the answers.
import assert from "node:assert/strict";
import * as z from "zod";
import { Article, Category, SharedQuote, list, one, shape, type Populated } from "./bifolio.js";

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const same = <A, B>(..._: Same<A, B> extends true ? [] : [never]): void => undefined;

same<z.infer<typeof Category>["colour"], "amber" | "slate" | "seaglass" | "rust" | "sand" | null>();
same<z.infer<typeof SharedQuote>["body"], string>();
const flat: Article = null as never as z.infer<typeof Article>;

const named = one("article", { populate: ["author.avatar", "tags"], fields: ["title"] });
type Named = z.infer<typeof named>["data"];
same<keyof Named, "id" | "documentId" | "title" | "author" | "tags">();
same<Named["tags"][number]["name"], string>();
const draft = list("article", { status: "draft", populate: { sections: { on: { "shared.quote": true } } } });
type Draft = z.infer<typeof draft>["data"][number];
same<Draft["title"], string | null>();
same<Draft["sections"][number]["__component"], "shared.quote">();
same<z.infer<ReturnType<typeof shape<"category">>>["name"], string>();
const counted = list("tag", { pagination: { start: 0, limit: 5 } });
same<z.infer<typeof counted>["meta"]["pagination"], { start: number; limit: number; total: number }>();
const paged: z.infer<typeof named>["data"] | Populated<"article", "author"> = null as never;
// @ts-expect-error an unknown type
void (() => one("artikel"));
// @ts-expect-error an unknown attribute
void (() => one("article", { fields: ["titel"] }));

const { BIFOLIO_URL: url, BIFOLIO_TOKEN: token } = process.env;
const get = async (path: string): Promise<unknown> =>
  (await fetch(`${url}/api/${path}`, { headers: { Authorization: `Bearer ${token}` } })).json();

const answer = named.parse(await get("articles/2024--the-knot-count?populate=author.avatar,tags&fields=title"));
assert.deepEqual(Object.keys(answer.data).sort(), ["author", "documentId", "id", "tags", "title"]);
assert.ok(answer.data.author?.avatar === null || answer.data.author?.avatar?.url);
const zone = draft.parse(await get("articles?status=draft&populate[sections][on][shared.quote]=true&pagination[pageSize]=100"));
assert.ok(zone.data.some((article) => article.sections.length > 0));
assert.equal(named.safeParse({ data: { id: 1, documentId: "a", title: "A", author: null }, meta: {} }).success, false);
assert.equal(counted.parse(await get("tags?pagination[start]=0&pagination[limit]=5")).meta.pagination.limit, 5);
void flat;
void paged;
console.log("typed");
