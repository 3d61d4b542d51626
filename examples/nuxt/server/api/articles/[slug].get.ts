export default defineEventHandler(async (event) => {
  const [article] = await findInBifolio<Article>(event, "articles", {
    "filters[slug][$eq]": getRouterParam(event, "slug", { decode: true }) ?? "",
    "populate[author][fields]": "name",
    "populate[cover]": "true",
  });
  if (!article) {
    throw createError({ statusCode: 404, statusMessage: "There is no such article" });
  }
  return article;
});
