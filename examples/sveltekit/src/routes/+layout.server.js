export function load({ locals }) {
  return { draft: locals.draft };
}
