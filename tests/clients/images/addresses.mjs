// Tests URLs of images made by real image components against a running server of the repository's own site, whose
// photograph has 960 × 540 pixels. sharp decodes each response.
import { strict as assert } from "node:assert";
import { readFile, readdir } from "node:fs/promises";
import { createRequire } from "node:module";
import { test } from "node:test";
import directus from "@nuxt/image/runtime/providers/directus";
import imgix from "@nuxt/image/runtime/providers/imgix";
import sharp from "sharp";
import { transformUrl } from "unpic";
import loader from "./next_loader.mjs";
import * as nuxt from "./nuxt.mjs";
import { imageOf, part } from "./sanity.mjs";
import * as unpic from "./unpic.mjs";

const { CMS, NEXT_FOLDER, ASTRO_FOLDER } = process.env;
const PATH = "/uploads/night-ferry.jpg";
const { getImageProps } = createRequire(`${NEXT_FOLDER}/package.json`)("next/image");

/** Return an image's width, height and format as one text. */
async function measured(data) {
  const { width, height, format, compression } = await sharp(data).metadata();
  return `${width}x${height} ${compression === "av1" ? "avif" : format}`;
}

async function shown(address) {
  const answer = await fetch(address, { headers: { Accept: "image/webp,image/*,*/*;q=0.8" } });
  const data = Buffer.from(await answer.arrayBuffer());
  assert.equal(answer.status, 200, `${address}: ${data}`);
  const format = answer.headers.get("Content-Type").replace("image/", "");
  const found = await measured(data);
  assert.ok(found.endsWith(` ${format}`), `${address}: ${found} is sent as ${format}`);
  return found;
}

async function refused(address, message) {
  const answer = await fetch(address);
  assert.equal(answer.status, 400, address);
  assert.ok((await answer.json()).error.message.startsWith(message), address);
}

async function check(expected, addressOf) {
  for (const [text, operations] of expected) assert.equal(await shown(addressOf(operations)), text, addressOf(operations));
}

/** Return the expected image for each address in an HTML file: the address, its `w` descriptor and its media type. */
async function addressesIn(file) {
  const html = (await readFile(file, "utf8")).replaceAll("http://localhost:1337", CMS).replaceAll("&amp;", "&");
  const found = [];
  for (const [, element, attributes] of html.matchAll(/<(source|img)\s([^>]*)>/g)) {
    const type = /type="([^"]+)"/.exec(attributes)?.[1];
    for (const [, name, value] of attributes.matchAll(/(src|srcset)="([^"]+)"/g)) {
      for (const candidate of value.split(",")) {
        const [address, descriptor] = candidate.trim().split(/\s+/);
        found.push({ element, name, address, type, width: descriptor && Number(descriptor.slice(0, -1)) });
      }
    }
  }
  return found;
}

test("HTML", async () => {
  for (const [file, amount] of [["srcset.html", 4], ["picture.html", 6]]) {
    const found = await addressesIn(file);
    assert.equal(found.length, amount);
    for (const { address, type, width } of found) {
      const image = await shown(address);
      if (width) assert.equal(image.split("x")[0], String(width), address);
      if (type) assert.ok(image.endsWith(type.replace("image/", " ")), address);
    }
  }
  assert.equal(await shown((await addressesIn("picture.html"))[0].address), "480x480 webp");
});

test("unpic, transformer directus", async () => {
  assert.equal(await shown(unpic.card), "400x300 webp");
  await check(
    [
      ["320x180 jpeg", { width: 320 }],
      ["90x120 jpeg", { width: 90, height: 120 }],
      ["120x68 avif", { width: 120, height: 120, fit: "inside", format: "avif", quality: 40 }],
      ["120x120 png", { width: 120, height: 120, fit: "contain", format: "png" }],
      ["213x120 jpeg", { width: 120, height: 120, fit: "outside", format: "jpeg" }],
      ["960x540 webp", { width: 1920, format: "auto" }],
      ["1200x675 webp", { width: 1200, format: "webp", withoutEnlargement: false }],
    ],
    ({ width, height, format, quality, ...directus }) =>
      transformUrl({ url: CMS + PATH, provider: "directus", width, height, format, quality }, { directus }),
  );
});

const IMGIX = [
  ["320x180 webp", { w: 320 }],
  ["320x180 webp", { w: 320, h: 180, fit: "crop", crop: "top,left" }],
  ["200x200 webp", { w: 100, h: 100, dpr: 2, crop: "faces,entropy", auto: "compress,format" }],
  ["160x90 avif", { w: 160, ar: "16:9", fm: "avif", q: 50 }],
  ["150x200 png", { h: 200, ar: "3:4", fit: "crop", crop: "edges", fm: "png" }],
  ["120x68 jpeg", { w: 120, h: 120, fit: "clip", fm: "pjpg" }],
  ["120x68 jpeg", { w: 120, h: 120, fit: "max", fm: "jpg" }],
  ["120x120 webp", { w: 120, h: 120, fit: "fill" }],
  ["120x120 webp", { w: 120, h: 120, fit: "fillmax" }],
  ["120x140 webp", { w: 120, h: 140, fit: "scale" }],
  ["50x40 webp", { rect: "10,20,100,80", w: 50 }],
  ["300x169 webp", { "max-w": 300 }],
  ["150x200 webp", { h: 200, "max-w": 150, fit: "crop", crop: "focalpoint", "fp-x": 0.1 / 3, "fp-y": 1 }],
];

test("unpic, transformer imgix", async () => {
  assert.equal(await shown(unpic.banner), "800x400 webp");
  const addressOf = (imgix) => transformUrl({ url: CMS + PATH, provider: "imgix" }, { imgix });
  await check(IMGIX, addressOf);
  await refused(addressOf({ w: 80, fit: "facearea" }), "fit must be one of");
  await refused(addressOf({ w: 80, fm: "mp4" }), "fm must be one of");
  await refused(addressOf({ w: 80, auto: "enhance" }), "auto must be one of");
});

test("@nuxt/image, provider directus", async () => {
  assert.equal(await shown(nuxt.card.url), "400x300 webp");
  await check(
    [
      ["321x181 jpeg", { width: 321 }],
      ["91x121 avif", { width: 91, height: 121, fit: "cover", format: "avif", quality: 30 }],
      ["121x68 jpeg", { width: 121, height: 121, fit: "inside", format: "jpeg" }],
      ["121x121 webp", { width: 121, height: 121, fit: "contain", format: "webp" }],
      ["1000x562 jpeg", { width: 1000, withoutEnlargement: false }],
    ],
    (modifiers) => directus().getImage(PATH, { baseURL: CMS, modifiers }).url,
  );
});

test("@nuxt/image, provider imgix", async () => {
  assert.equal(await shown(nuxt.whole.url), "400x400 jpeg");
  const addressOf = (modifiers) => imgix().getImage(PATH, { baseURL: CMS, modifiers }).url;
  await check(
    [
      ["322x181 webp", { width: 322, auto: "format" }],
      ["92x122 jpeg", { width: 92, height: 122, fit: "cover", quality: 30 }],
      ["122x69 png", { width: 122, height: 122, fit: "inside", format: "png" }],
      ["122x122 webp", { width: 122, height: 122, fit: "fill", format: "webp" }],
      ["122x122 jpeg", { width: 122, height: 122, fit: "outside", format: "jpeg" }],
      ["244x122 jpeg", { width: 122, aspectRatio: "2:1", pixelDensity: 2 }],
      ["61x61 jpeg", { width: 61, sourceRectangleRegion: "0,0,300,300" }],
      ["302x170 jpeg", { maximumWidth: 302 }],
    ],
    addressOf,
  );
  await refused(addressOf({ width: 80, fit: "clamp" }), "fit must be one of");
});

test("@sanity/image-url", async () => {
  assert.equal(await shown(part), "300x338 webp");
  const { image, address } = imageOf({ url: PATH, width: 960, height: 540, ext: ".jpg" });
  const ofDocument = image.image({
    asset: { _ref: "image-x-960x540-jpg" },
    hotspot: { x: 0.9, y: 0.5, width: 0.1, height: 0.1 },
    crop: { left: 0.5, right: 0, top: 0, bottom: 0.25 },
  });
  await check(
    [
      ["323x182 jpeg", image.width(323)],
      ["93x123 png", image.size(93, 123).format("png")],
      ["200x246 jpeg", image.size(100, 123).dpr(2).quality(40)],
      ["123x123 webp", image.size(123, 123).fit("max").auto("format")],
      ["123x123 webp", image.size(123, 123).fit("crop").crop("entropy").format("webp")],
      ["123x69 jpeg", image.size(123, 123).fit("clip").crop("bottom").format("pjpg")],
      ["123x99 jpeg", image.size(123, 99).fit("scale").crop("center")],
      ["123x123 jpeg", image.size(123, 123).fit("fillmax").crop("left")],
      ["123x150 jpeg", image.size(123, 150).fit("min").focalPoint(1 / 3, 0.25)],
      ["303x170 jpeg", image.maxWidth(303)],
      ["151x200 jpeg", image.height(200).minWidth(100).maxWidth(151).fit("crop")],
      ["240x202 jpeg", ofDocument.width(240)],
      ["240x100 jpeg", ofDocument.size(240, 100)],
    ],
    address,
  );
});

test("next/image", async () => {
  const fill = getImageProps({ loader, src: PATH, alt: "", fill: true, sizes: "100vw" }).props.srcSet;
  for (const [, address, width] of fill.matchAll(/(\S+) (\d+)w/g)) {
    const largest = Math.min(Number(width), 960);
    assert.equal(await shown(address), `${largest}x${Math.round((largest * 9) / 16)} webp`);
  }
  const { srcSet, src } = getImageProps({ loader, src: PATH, alt: "", width: 300, height: 169 }).props;
  assert.ok(srcSet.endsWith(" 2x"), srcSet);
  assert.equal(await shown(srcSet.split(" ")[0]), "384x216 webp");
  assert.equal(await shown(src), "640x360 webp");
});

test("astro:assets", async () => {
  const files = await readdir(`${ASTRO_FOLDER}/dist/_astro`);
  const page = await readFile(`${ASTRO_FOLDER}/dist/index.html`, "utf8");
  const found = new Map();
  for (const [, name] of page.matchAll(/ src="\/_astro\/([^"]+)"/g)) {
    found.set(await measured(await readFile(`${ASTRO_FOLDER}/dist/_astro/${name}`)), name);
  }
  assert.deepEqual([...found.keys()], ["600x338 webp", "800x300 avif"]);
  assert.equal(files.length, 2);
});
