// Visitors ask this server for pictures, so that Bifolio need not be reachable for them.
export default defineEventHandler((event) =>
  proxyRequest(event, `${useRuntimeConfig(event).bifolioUrl}/uploads/${getRouterParam(event, "path")}`),
);
