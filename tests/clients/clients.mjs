// What each client gets from a live server, by its own functions and without a change on its side.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { test } from "node:test";
import { strapi } from "@strapi/client";
import { strapiLoader } from "strapi-community-astro-loader";

const require = createRequire(import.meta.url);
const axios = require("axios");
const Strapi = require("strapi-sdk-js");
const gatsby = require("gatsby-source-strapi/dist/fetch.js");

const { BIFOLIO_URL: url, BIFOLIO_TOKEN: token } = process.env;
const client = strapi({ baseURL: `${url}/api`, auth: token });

test("@strapi/client: collections", async () => {
  const posts = client.collection("posts");
  const made = await posts.create({ title: "By the client", tags: ["sea"] });
  assert.match(made.data.documentId, /^[a-z][a-z0-9]{23}$/);
  const found = await posts.find({ filters: { title: { $eq: "By the client" } }, populate: ["tags"] });
  assert.equal(found.meta.pagination.total, 1);
  assert.deepEqual(found.data[0].tags.map((tag) => tag.name), ["Sea"]);
  const one = await posts.findOne(made.data.documentId, { fields: ["title"] });
  assert.deepEqual(Object.keys(one.data).sort(), ["documentId", "id", "title"]);
  const changed = await posts.update(made.data.documentId, { title: "Changed" });
  assert.equal(changed.data.title, "Changed");
  await posts.delete(made.data.documentId);
  await assert.rejects(posts.findOne(made.data.documentId), /Not ?Found|404/i);
});

test("@strapi/client: single types", async () => {
  const about = client.single("about");
  assert.equal((await about.update({ title: "About" })).data.title, "About");
  assert.equal((await about.find()).data.title, "About");
  await about.delete();
  await assert.rejects(about.find());
});

test("@strapi/client: files", async () => {
  const info = { name: "note.txt", alternativeText: "A note" };
  const sent = await client.files.upload(new Blob(["salt"], { type: "text/plain" }), {
    fileInfo: info,
    filename: "note.txt",
    mimetype: "text/plain",
  });
  const file = sent[0];
  assert.equal(file.alternativeText, "A note");
  assert.ok((await client.files.find()).some((other) => other.id === file.id));
  assert.equal((await client.files.findOne(file.id)).mime, "text/plain");
  assert.equal((await client.files.update(file.id, { caption: "Salt" })).caption, "Salt");
  assert.equal(await (await fetch(`${url}${file.url}`)).text(), "salt");
  await client.files.delete(file.id);
  await assert.rejects(client.files.findOne(file.id));
});

test("@strapi/client: a login, and a token that is no good", async () => {
  const answer = await fetch(`${url}/api/auth/local`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ identifier: "ann", password: "secret12" }),
  });
  const { jwt } = await answer.json();
  const ann = strapi({ baseURL: `${url}/api`, auth: jwt });
  assert.equal((await ann.collection("tags").find()).data[0].name, "Sea");
  await assert.rejects(strapi({ baseURL: `${url}/api`, auth: "nope" }).collection("tags").find(), /401|Unauthorized/i);
});

test("strapi-sdk-js", async () => {
  // The SDK keeps its token in a browser's storage and nowhere else: this much of a browser it needs.
  const kept = new Map();
  const localStorage = {
    setItem: (name, value) => kept.set(name, value),
    getItem: (name) => kept.get(name) ?? null,
    removeItem: (name) => kept.delete(name),
  };
  globalThis.window = { localStorage };
  const sdk = new Strapi({ url, prefix: "/api", store: { key: "jwt", useLocalStorage: true } });
  const { user, jwt } = await sdk.login({ identifier: "ann", password: "secret12" });
  assert.equal(user.username, "ann");
  assert.equal(jwt.split(".").length, 3);
  assert.equal((await sdk.fetchUser()).email, "ann@example.org");
  const found = await sdk.find("posts", { filters: { title: { $startsWith: "Post" } }, sort: "title:desc" });
  assert.deepEqual(found.data.slice(0, 2).map((post) => post.title), ["Post 29", "Post 28"]);
  assert.equal((await sdk.findOne("posts", "post-3", { populate: ["tags"] })).data.tags.length, 1);
  sdk.setToken(token);
  const made = await sdk.create("posts", { title: "By the SDK" });
  assert.equal((await sdk.update("posts", made.data.documentId, { title: "Again" })).data.title, "Again");
  await sdk.delete("posts", made.data.documentId);
  delete globalThis.window;
});

test("gatsby-source-strapi: types, components, and every page in parallel", async () => {
  const axiosInstance = axios.create({ baseURL: url, headers: { authorization: `Bearer ${token}` } });
  const { contentTypes, components, schemas } = await gatsby.fetchStrapiContentTypes(axiosInstance);
  assert.deepEqual(components.map((component) => component.uid), ["shared.quote", "shared.seo"]);
  const uids = contentTypes.map((type) => type.uid);
  for (const type of contentTypes) {
    for (const attribute of Object.values(type.schema.attributes)) {
      if (attribute.target) assert.ok(uids.includes(attribute.target), attribute.target);
    }
  }
  const context = {
    reporter: { info() {}, panic: (message, error) => assert.fail(`${message} ${error}`) },
    axiosInstance,
    strapiConfig: { accessToken: token },
    schemas,
  };
  const pagination = { pageSize: 10, page: 1 };
  const found = await gatsby.fetchEntities(
    { endpoint: "/api/posts", queryParams: { pagination, populate: "*" }, uid: "api::post.post", pluginOptions: {} },
    context,
  );
  assert.equal(found.length, 30);
  assert.equal(new Set(found.map((post) => post.documentId)).size, 30);
  const single = { endpoint: "/api/about", queryParams: { populate: "*" }, uid: "api::about.about", pluginOptions: {} };
  assert.deepEqual(await gatsby.fetchEntity(single, context), []);
  const later = await axiosInstance.get(`/api/posts?filters[updatedAt][$gt]=${Date.now() + 60_000}`);
  assert.equal(later.data.meta.pagination.total, 0);
});

test("strapi-community-astro-loader: pages through a populated collection", async () => {
  const kept = new Map();
  const meta = new Map();
  const loader = strapiLoader({
    contentType: "post",
    clientConfig: { baseURL: `${url}/api`, auth: token },
    params: { populate: { tags: true }, sort: "title" },
    pageSize: 7,
  });
  await loader.load({
    store: { set: ({ id, data }) => kept.set(id, data) },
    meta,
    logger: { info() {}, debug() {} },
    generateDigest: JSON.stringify,
    parseData: async ({ data }) => data,
  });
  assert.equal(kept.size, 30);
  assert.equal(kept.get("post-0").tags[0].name, "Sea");
});
