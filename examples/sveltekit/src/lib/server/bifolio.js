import { env } from "$env/dynamic/private";
import { error } from "@sveltejs/kit";

export const url = env.BIFOLIO_URL ?? "http://127.0.0.1:1337";

/** A list from Bifolio. Drafts are for those who have a token. */
async function find(plural, parameters, draft) {
  const query = new URLSearchParams({ ...parameters, status: draft ? "draft" : "published" });
  const headers = draft ? { Authorization: `Bearer ${env.BIFOLIO_TOKEN}` } : {};
  const answer = await fetch(`${url}/api/${plural}?${query}`, { headers });
  if (!answer.ok) {
    error(502, `Bifolio answers ${answer.status} to /api/${plural}?${query}: ${await answer.text()}`);
  }
  return (await answer.json()).data;
}

/** The newest articles, without their text. */
export function listArticles(draft) {
  return find(
    "articles",
    { fields: "title,slug,summary", sort: "publishedOn:desc", "pagination[pageSize]": 100 },
    draft,
  );
}

/** One article with its author and its picture. */
export async function getArticle(slug, draft) {
  const [article] = await find(
    "articles",
    { "filters[slug][$eq]": slug, "populate[author][fields]": "name", "populate[cover]": true },
    draft,
  );
  return article ?? error(404, "There is no such article");
}
