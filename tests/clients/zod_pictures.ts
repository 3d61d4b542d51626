// What `bifolio types --zod` writes for a site with `media.formats` and `media.placeholders`: it accepts the answers, and
// refuses damaged ones.
import assert from "node:assert/strict";
import * as z from "zod";
import { UploadFile, one } from "./bifolio.js";

const { BIFOLIO_URL: url, BIFOLIO_TOKEN: token } = process.env;
const read = async (path: string): Promise<any> => {
  return (await fetch(`${url}/api/${path}`, { headers: { Authorization: `Bearer ${token}` } })).json();
};
const schema = one("note", { populate: "*" });
const answer = await read("notes/one?populate=*");
const { data } = schema.parse(answer);
assert.equal(data.cover?.formats?.card?.sizeInBytes, null);
// The library is the same for all locales.
const files = z.array(UploadFile.omit({ locale: true })).parse(await read("upload/files"));
assert.deepEqual(files.map((file) => file.placeholder === null).sort(), [false, true]);

const DAMAGES: ((cover: any) => void)[] = [
  (cover) => (cover.formats.card.size = 5),
  (cover) => (cover.formats.small.size = null),
  (cover) => (cover.formats["wide-2"].width = "600"),
  (cover) => delete cover.formats.card.url,
  (cover) => (cover.placeholder = 5),
  (cover) => delete cover.color,
];
for (const damage of DAMAGES) {
  const damaged = structuredClone(answer);
  damage(damaged.data.cover);
  assert.equal(schema.safeParse(damaged).success, false, String(damage));
}
console.log("pictures");
