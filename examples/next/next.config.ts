import type { NextConfig } from "next";

const url = process.env.BIFOLIO_URL ?? "http://127.0.0.1:1337";

const config: NextConfig = {
  // Visitors request images from this server, so Bifolio does not have to be public.
  rewrites: async () => [{ source: "/uploads/:path*", destination: `${url}/uploads/:path*` }],
};

export default config;
