// What `bifolio types` writes, with `@strapi/client`: compiled with `tsc --strict`, then run. Each line
// below `@ts-expect-error` must not compile.
import assert from "node:assert/strict";
import { test } from "node:test";
import { strapi, type API, type StrapiClient } from "@strapi/client";
import type { Client, Filters, Input, Locale, Populated, Post } from "./bifolio.js";

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const same = <A, B>(..._: Same<A, B> extends true ? [] : [never]): void => undefined;

const { BIFOLIO_URL: url, BIFOLIO_TOKEN: token } = process.env;
const config = { baseURL: `${url}/api`, auth: token ?? "" };
const client = strapi(config) as Client<StrapiClient>;
const posts = client.collection("posts");

test("types: what is not populated is not there", async () => {
  const { data, meta } = await posts.find({
    filters: { title: { $startsWith: "Post" }, tags: { name: { $in: ["Sea"] } }, mood: "calm" },
    sort: ["title:desc", "createdAt"],
    pagination: { pageSize: 2 },
  });
  const [first] = data;
  assert.ok(first);
  same<typeof first.title, string | null>();
  same<typeof first.mood, "calm" | "rough" | null>();
  same<typeof first.locale, "en">();
  assert.equal(first.title, "Post 29");
  assert.equal(meta.pagination.total, 30);
  // @ts-expect-error tags are not populated
  assert.equal(first.tags, undefined);
});

test("types: fields and populate, by name and in the object form", async () => {
  const named = await posts.findOne("post-3", { fields: ["title"], populate: ["tags", "cover", "parts"] });
  same<keyof typeof named.data, "id" | "documentId" | "title" | "tags" | "cover" | "parts">();
  assert.deepEqual(Object.keys(named.data).sort(), ["cover", "documentId", "id", "parts", "tags", "title"]);
  assert.equal(named.data.tags[0]?.name, "Sea");
  assert.equal(named.data.cover?.url, undefined);
  const described = await posts.findOne("post-3", {
    populate: { tags: { fields: ["name"], populate: { posts: { fields: ["title"], sort: "title" } } }, seo: true, cover: false },
  });
  const [tag] = described.data.tags;
  same<keyof NonNullable<typeof tag>, "id" | "documentId" | "name" | "posts">();
  assert.equal(tag?.posts[0]?.title, "Post 00");
  assert.equal(described.data.seo, null);
  // @ts-expect-error switched off
  assert.equal(described.data.cover, undefined);
  const dotted = await posts.findOne("post-3", { populate: ["tags.posts"] });
  assert.equal(dotted.data.tags[0]?.posts.length, 30);
});

test("types: bodies, and the entries of a zone", async () => {
  const input: Input<"post"> = {
    title: "Typed",
    tags: { connect: ["sea"] },
    parts: [{ __component: "shared.quote", body: "Long foretold" }, { __component: "shared.seo", title: "x" }],
  };
  const made = await posts.create(input, { populate: "*" });
  for (const part of made.data.parts) {
    if (part.__component === "shared.quote") assert.equal(part.body, "Long foretold");
    else assert.equal(part.title, "x");
  }
  const only = await posts.findOne(made.data.documentId, { populate: { parts: { on: { "shared.seo": true } } } });
  same<(typeof only.data.parts)[number]["__component"], "shared.seo">();
  assert.deepEqual(only.data.parts.map((part) => part.title), ["x"]);
  const changed = await posts.update(made.data.documentId, { mood: "rough", title: null });
  assert.equal(changed.data.mood, "rough");
  const draft = await posts.findOne(made.data.documentId, { status: "draft" });
  same<typeof draft.data.publishedAt, string | null>();
  assert.equal(draft.data.publishedAt, null);
  await posts.delete(made.data.documentId);
});

test("types: single types, and the shapes of the client itself", async () => {
  const about = client.single("about");
  const { data } = await about.update({ title: "About" });
  same<typeof data.title, string | null>();
  await about.delete();
  const plain = (await strapi(config).collection("posts").find()) as API.DocumentResponseCollection<Post>;
  assert.match(plain.data[0]?.title ?? "", /^Post/);
  const page = (post: Populated<"post", "tags">): string => `${post.title}: ${post.tags.map((tag) => tag.name)}`;
  const one = await posts.findOne("post-3", { populate: "tags" });
  assert.equal(page(one.data), "Post 03: Sea");
  const filters: Filters<"post"> = { $or: [{ title: "Post 03" }, { tags: { $null: true } }, { $not: { mood: "calm" } }] };
  assert.equal((await posts.find({ filters })).data.length, 1);
  const locale: Locale = "en";
  assert.equal((await posts.find({ locale, pagination: { start: 1, limit: 1, withCount: false } })).data.length, 1);
});

export async function refused(): Promise<void> {
  // @ts-expect-error no such collection
  client.collection("post");
  // @ts-expect-error no such attribute
  await posts.find({ filters: { titel: "x" } });
  // @ts-expect-error no such operator
  await posts.find({ filters: { title: { $like: "x" } } });
  // @ts-expect-error no such value
  await posts.find({ filters: { mood: "wild" } });
  // @ts-expect-error no such link
  await posts.find({ populate: ["tag"] });
  // @ts-expect-error no such link, beside one that there is
  await posts.find({ populate: { tag: true, tags: true } });
  // @ts-expect-error a link is no field
  await posts.find({ fields: ["tags"] });
  // @ts-expect-error no such parameter
  await posts.find({ filter: {} });
  // @ts-expect-error no such locale
  await posts.find({ locale: "fr" });
  // @ts-expect-error no such order
  await posts.find({ sort: "title:down" });
  // @ts-expect-error no such value
  await posts.create({ mood: "wild" });
  // @ts-expect-error the body of a quote is required
  await posts.create({ parts: [{ __component: "shared.quote" }] });
  // @ts-expect-error no component of this zone
  await posts.create({ parts: [{ __component: "shared.other" }] });
}
