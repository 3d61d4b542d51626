export default defineEventHandler((event) =>
  findInBifolio<Article>(event, "articles", {
    fields: "title,slug,summary",
    sort: "publishedOn:desc",
    "pagination[pageSize]": "100",
  }),
);
