export default defineEventHandler((event) =>
  findInQuire<Article>(event, "articles", {
    fields: "title,slug,summary",
    sort: "publishedOn:desc",
    "pagination[pageSize]": "100",
  }),
);
