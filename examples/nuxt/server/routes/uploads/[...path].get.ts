// Visitors ask this server for pictures, so that Quire need not be reachable for them.
export default defineEventHandler((event) =>
  proxyRequest(event, `${useRuntimeConfig(event).quireUrl}/uploads/${getRouterParam(event, "path")}`),
);
