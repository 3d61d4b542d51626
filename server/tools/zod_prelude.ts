// --- zod schemas of answers ------------------------------------------------------------------

type Link = { kind: "one" | "always" | "many" | "zone" | "oneOf" | "manyOf"; types: readonly TypeName[] };
type Shape = { [name: string]: z.ZodType };
type IsDraft<Q> = Of<Q, "status"> extends "draft" ? true : false;
/** The pagination in an answer to a query: by page, or by offset. */
export type PaginationOf<Q> =
  Of<Q, "pagination"> extends { start: number } | { limit: number } ? Counted<Offset, Of<Q, "pagination">> : Counted<Pagination, Of<Q, "pagination">>;
export type Offset = { start: number; limit: number; total: number };
type Counted<P, G> = G extends { withCount: false } ? Omit<P, "total" | "pageCount"> : P;

/** The schema of an answer with one document: `one("article", { populate: ["author"] })`. */
export function one<T extends TypeName, const Q extends OneQuery<T> = {}>(
  type: T,
  query?: Q,
): z.ZodType<{ data: Shown<T, Q, IsDraft<Q>>; meta: {} }> {
  return z.object({ data: shown(type, query, isDraft(query)), meta: z.object({}) }) as never;
}

/** The schema of an answer with a list of documents: `list("article", { fields: ["title"] })`. */
export function list<T extends TypeName, const Q extends Query<T> = {}>(
  type: T,
  query?: Q,
): z.ZodType<{ data: Shown<T, Q, IsDraft<Q>>[]; meta: { pagination: PaginationOf<Q> } }> {
  const data = z.array(shown(type, query, isDraft(query)));
  return z.object({ data, meta: z.object({ pagination: pagination(member(query, "pagination")) }) }) as never;
}

/** The schema of a document, component or file, as an answer to a query shows it. */
export function shape<T extends TypeName, const Q extends OneQuery<T> = {}>(type: T, query?: Q): z.ZodType<Shown<T, Q, IsDraft<Q>>> {
  return shown(type, query, isDraft(query)) as never;
}

function isDraft(query: unknown): boolean {
  return member(query, "status") === "draft";
}

function member(value: unknown, name: string): unknown {
  return isObject(value) && has(value, name) ? value[name] : undefined;
}

function isObject(value: unknown): value is { [name: string]: unknown } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function has(value: object, name: string): boolean {
  return Object.prototype.hasOwnProperty.call(value, name);
}

function words(value: unknown): string[] {
  return Array.isArray(value) ? value.flatMap(words) : String(value).split(",");
}

function pagination(asked: unknown): z.ZodType {
  const count = z.int().nonnegative();
  const total = member(asked, "withCount") === false ? {} : { total: count };
  const isOffset = member(asked, "start") !== undefined || member(asked, "limit") !== undefined;
  if (isOffset) return z.object({ start: count, limit: z.int(), ...total });
  return z.object({ page: count, pageSize: count, ...(has(total, "total") ? { pageCount: count } : {}), ...total });
}

function shown(type: TypeName, query: unknown, draft: boolean, first: Shape = {}): z.ZodObject {
  const linked = requested(type, member(query, "populate")).map(([name, inner]) => [name, held(LINKS[type][name] as Link, inner, draft)]);
  return z.object({ ...first, ...chosen(type, member(query, "fields"), draft), ...(Object.fromEntries(linked) as Shape) });
}

/** What every draft has; its other attributes may be null. */
const ALWAYS = ["id", "documentId", "createdAt", "updatedAt", "locale"];

function chosen(type: TypeName, fields: unknown, draft: boolean): Shape {
  const names = fields === undefined ? ["*"] : words(fields);
  const kept = (Object.entries(SHAPES[type].shape) as [string, z.ZodType][]).filter(
    ([name]) => names.includes("*") || names.includes(name) || name === "id" || name === "documentId",
  );
  return Object.fromEntries(kept.map(([name, value]) => [name, draft && !ALWAYS.includes(name) ? z.nullable(value) : value]));
}

/** The names that `populate` asks for, each with the query for what it leads to. */
function requested(type: TypeName, populate: unknown): [string, unknown][] {
  const every = Object.keys(LINKS[type]);
  if (populate === undefined || populate === false) return [];
  if (!isObject(populate)) {
    const asked = words(populate === true ? "*" : populate).map((word) => word.split("."));
    return every
      .filter((name) => asked.some(([head]) => head === "*" || head === name))
      .map((name) => [name, { populate: tails(asked, name) }]);
  }
  const all = has(populate, "*") && populate["*"] !== false;
  return every
    .filter((name) => (has(populate, name) ? populate[name] !== false && populate[name] !== "false" && populate[name] !== undefined : all))
    .map((name) => [name, member(populate, name)]);
}

function tails(asked: string[][], name: string): string[] | undefined {
  const found = asked.filter(([head, ...tail]) => head === name && tail.length > 0).map(([, ...tail]) => tail.join("."));
  return found.length > 0 ? found : undefined;
}

function held(link: Link, query: unknown, draft: boolean): z.ZodType {
  switch (link.kind) {
    case "one":
      return z.nullable(z.union(link.types.map((type) => shown(type, query, draft))));
    case "always": {
      const value = z.union(link.types.map((type) => shown(type, query, draft)));
      return draft ? z.nullable(value) : value;
    }
    case "many":
      return z.array(z.union(link.types.map((type) => shown(type, query, draft))));
    case "zone":
      return z.array(named(link, "__component", query, draft));
    case "oneOf":
      return z.nullable(named(link, "__type", query, draft));
    case "manyOf":
      return z.array(named(link, "__type", query, draft));
  }
}

/** One of several types, which a key names. */
function named(link: Link, key: string, query: unknown, draft: boolean): z.ZodType {
  const on = member(query, "on");
  const types = link.types.filter((type) => !isObject(on) || has(on, UIDS[type]));
  if (types.length === 0) return z.never();
  const inner = (type: TypeName): unknown => (isObject(on) ? on[UIDS[type]] : query);
  return z.union(types.map((type) => shown(type, inner(type), draft, { [key]: z.literal(UIDS[type]) })));
}
