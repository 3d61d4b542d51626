const url = process.env.BIFOLIO_URL ?? "http://127.0.0.1:1337";
// Drafts are for those who have a token.
const status = process.env.BIFOLIO_STATUS ?? "published";
const headers = process.env.BIFOLIO_TOKEN ? { Authorization: `Bearer ${process.env.BIFOLIO_TOKEN}` } : {};

/** Every document of a content type, by its plural name. */
async function findAll(plural, parameters) {
  const documents = [];
  for (let page = 1, pages = 1; page <= pages; page++) {
    const paging = { "pagination[page]": page, "pagination[pageSize]": 100 };
    const query = new URLSearchParams({ ...parameters, ...paging, status });
    const answer = await fetch(`${url}/api/${plural}?${query}`, { headers });
    if (!answer.ok) {
      throw new Error(`Bifolio answers ${answer.status} to /api/${plural}?${query}: ${await answer.text()}`);
    }
    const { data, meta } = await answer.json();
    documents.push(...data);
    pages = meta.pagination.pageCount;
  }
  return documents;
}

/** What templates see as `bifolio`. */
export default async function () {
  const articles = await findAll("articles", {
    sort: "publishedOn:desc",
    "populate[author][fields]": "name",
    "populate[cover]": true,
  });
  return { url, articles };
}
