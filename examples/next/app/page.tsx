import { draftMode } from "next/headers";
import Link from "next/link";
import { listArticles } from "@/lib/bifolio";

export default async function Home() {
  const { isEnabled } = await draftMode();
  const articles = await listArticles(isEnabled);
  return (
    <main>
      <h1>Slack Water</h1>
      <ul>
        {articles.map((article) => (
          <li key={article.documentId}>
            <Link href={`/articles/${article.slug}`}>{article.title}</Link> {article.summary}
          </li>
        ))}
      </ul>
    </main>
  );
}
