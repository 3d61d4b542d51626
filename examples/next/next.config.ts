import type { NextConfig } from "next";

const url = process.env.BIFOLIO_URL ?? "http://127.0.0.1:1337";

const config: NextConfig = {
  // Visitors ask this server for pictures, so that Bifolio need not be reachable for them.
  rewrites: async () => [{ source: "/uploads/:path*", destination: `${url}/uploads/:path*` }],
};

export default config;
