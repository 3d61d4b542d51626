const url = process.env.BIFOLIO_URL ?? "http://127.0.0.1:1337";

export interface Picture {
  url: string;
  alternativeText: string | null;
  width: number;
  height: number;
}

export interface Article {
  documentId: string;
  title: string;
  slug: string;
  summary: string | null;
  body: string | null;
  publishedOn: string | null;
  author: { name: string } | null;
  cover: Picture | null;
}

/** A list from Bifolio. Drafts are for those who have a token. */
async function find<T>(path: string, parameters: Record<string, string>, draft: boolean): Promise<T[]> {
  const query = new URLSearchParams({ ...parameters, status: draft ? "draft" : "published" });
  const answer = await fetch(`${url}/api/${path}?${query}`, {
    headers: draft ? { Authorization: `Bearer ${process.env.BIFOLIO_TOKEN}` } : {},
    ...(draft ? { cache: "no-store" } : { next: { revalidate: 60 } }),
  });
  if (!answer.ok) {
    throw new Error(`Bifolio answers ${answer.status} to /api/${path}?${query}: ${await answer.text()}`);
  }
  return (await answer.json()).data;
}

/** The newest articles, without their text. */
export function listArticles(draft: boolean): Promise<Article[]> {
  return find<Article>(
    "articles",
    { fields: "title,slug,summary,publishedOn", sort: "publishedOn:desc", "pagination[pageSize]": "100" },
    draft,
  );
}

/** One article with its author and its picture. */
export async function getArticle(slug: string, draft: boolean): Promise<Article | undefined> {
  const found = await find<Article>(
    "articles",
    { "filters[slug][$eq]": slug, "populate[author][fields]": "name", "populate[cover]": "true" },
    draft,
  );
  return found[0];
}
