import { env } from "$env/dynamic/private";

/** Visitors who have opened /preview with the secret see drafts. */
export function handle({ event, resolve }) {
  const secret = event.cookies.get("preview");
  event.locals.draft = Boolean(env.PREVIEW_SECRET) && secret === env.PREVIEW_SECRET;
  return resolve(event);
}
