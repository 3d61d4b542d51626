import { defineConfig } from "astro/config";

const { protocol, hostname, port } = new URL(process.env.CMS);

export default defineConfig({
  image: { remotePatterns: [{ protocol: protocol.slice(0, -1), hostname, port, pathname: "/uploads/**" }] },
});
