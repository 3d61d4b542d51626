// What `bifolio types` writes for a site with `media.formats` and `media.placeholders`: the types are those of the answers.
import assert from "node:assert/strict";
import type { ImageFormats, Note, Populated, UploadFile } from "./bifolio.js";

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const same = <A, B>(..._: Same<A, B> extends true ? [] : [never]): void => undefined;

same<keyof ImageFormats, "thumbnail" | "small" | "medium" | "large" | "card" | "wide-2">();
same<NonNullable<ImageFormats["small"]>["size"], number>();
same<NonNullable<ImageFormats["card"]>["size"], null>();
same<NonNullable<ImageFormats["wide-2"]>["sizeInBytes"], null>();
same<NonNullable<ImageFormats["card"]>["width"], number>();
same<UploadFile["placeholder"], string | null>();
same<UploadFile["color"], string | null>();
// @ts-expect-error no such format
void ((formats: ImageFormats) => formats.poster);

const { BIFOLIO_URL: url, BIFOLIO_TOKEN: token } = process.env;
const read = async <T>(path: string): Promise<T> => {
  return (await fetch(`${url}/api/${path}`, { headers: { Authorization: `Bearer ${token}` } })).json() as Promise<T>;
};
const { data: note } = await read<{ data: Note & Populated<"note", "cover" | "gallery"> }>("notes/one?populate=*");
for (const file of [note.cover, ...note.gallery]) {
  assert.ok(file?.formats?.card && file.formats["wide-2"] && file.formats.small);
  assert.equal(file.formats.card.size, null);
  assert.equal(file.formats.small.size > 0, true);
  assert.deepEqual([file.formats.card.width, file.formats["wide-2"].width], [480, 600]);
  assert.match(file.placeholder ?? "", /^.{18,36}$/);
  assert.match(file.color ?? "", /^#[0-9a-f]{6}$/);
}
const files = await read<UploadFile[]>("upload/files");
assert.deepEqual(files.map((file) => [file.name, typeof file.placeholder, file.formats]).filter(([name]) => name === "draw.svg"), [
  ["draw.svg", "object", null],
]);
console.log("pictures");
