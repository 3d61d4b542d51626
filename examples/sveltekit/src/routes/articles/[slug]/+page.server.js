import { getArticle } from "$lib/server/bifolio";
import { marked } from "marked";

export async function load({ params, locals }) {
  const article = await getArticle(params.slug, locals.draft);
  return { article, html: marked.parse(article.body ?? "") };
}
