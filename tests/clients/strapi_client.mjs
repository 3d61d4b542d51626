// The lines of docs/frontends.md with the official client, and what they find.
import assert from "node:assert/strict";
import { strapi } from "@strapi/client";

const client = strapi({ baseURL: `${process.env.BIFOLIO_URL}/api`, auth: process.env.BIFOLIO_TOKEN });
const { data, meta } = await client.collection("posts").find({ fields: ["title"], sort: "title:asc" });
console.log(`${meta.pagination.total} posts, the first one is ${data[0].title}`);

assert.equal(meta.pagination.total, 30);
assert.equal(data[0].title, "Post 00");
