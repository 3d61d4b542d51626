import { env } from "$env/dynamic/private";
import { error, redirect } from "@sveltejs/kit";

/** /preview?secret=…&slug=… shows drafts in this browser; /preview alone ends that. */
export function GET({ url, cookies }) {
  const secret = url.searchParams.get("secret");
  if (secret === null) {
    cookies.delete("preview", { path: "/" });
    redirect(307, "/");
  }
  if (!env.PREVIEW_SECRET || secret !== env.PREVIEW_SECRET) {
    error(401, "The secret is wrong");
  }
  cookies.set("preview", secret, { path: "/" });
  const slug = url.searchParams.get("slug");
  redirect(307, slug ? `/articles/${encodeURIComponent(slug)}` : "/");
}
