// Visitors request images from this server, so Bifolio does not have to be public.
export default defineEventHandler((event) =>
  proxyRequest(event, `${useRuntimeConfig(event).bifolioUrl}/uploads/${getRouterParam(event, "path")}`),
);
