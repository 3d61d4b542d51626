import { defineConfig } from "astro/config";

const url = new URL(process.env.BIFOLIO_URL ?? "http://127.0.0.1:1337");

export default defineConfig({
  // Pictures of these hosts are downloaded and scaled when the site is built.
  image: { domains: [url.hostname] },
});
