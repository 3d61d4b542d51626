import { env } from "$env/dynamic/private";

/** Whoever has been to /preview with the secret sees drafts. */
export function handle({ event, resolve }) {
  const secret = event.cookies.get("preview");
  event.locals.draft = Boolean(env.PREVIEW_SECRET) && secret === env.PREVIEW_SECRET;
  return resolve(event);
}
