import { listArticles } from "$lib/server/bifolio";

export async function load({ locals }) {
  return { articles: await listArticles(locals.draft) };
}
