import { listArticles } from "$lib/server/quire";

export async function load({ locals }) {
  return { articles: await listArticles(locals.draft) };
}
