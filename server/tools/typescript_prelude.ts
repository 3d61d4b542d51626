// --- what every site has ---------------------------------------------------------------------

/** Any JSON value. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** What every version of a document has. A `type`, not an interface: it also fits `API.Document`. */
export type Version = {
  id: number;
  /** Addresses the document in paths; the same in every locale. */
  documentId: string;
  createdAt: string;
  updatedAt: string;
  /** When it was published; null only in drafts. */
  publishedAt: string;
  locale: Locale;
};

/** A version as `status=draft` shows it: what is required may still be missing. */
export type Draft<T> = {
  [K in keyof T]: K extends "id" | "documentId" | "createdAt" | "updatedAt" | "locale" | "__component" ? T[K] : T[K] | null;
};

/** One of the smaller pictures that are made of a large one. */
export type ImageFormat = {
  name: string;
  hash: string;
  ext: string;
  mime: string;
  path: string | null;
  width: number;
  height: number;
  /** In kB. */
  size: number;
  sizeInBytes: number;
  url: string;
};
export type ImageFormats = { [name in "thumbnail" | "small" | "medium" | "large"]?: ImageFormat };

/** Rich text of the type `blocks`. */
export type RichBlock =
  | { type: "paragraph" | "quote"; children: RichInline[] }
  | { type: "heading"; level: 1 | 2 | 3 | 4 | 5 | 6; children: RichInline[] }
  | { type: "code"; language?: string; children: RichInline[] }
  | RichList
  | { type: "image"; image: { url: string; alternativeText?: string | null; [key: string]: Json | undefined }; children: RichInline[] };
export type RichList = { type: "list"; format: "ordered" | "unordered"; indentLevel?: number; children: (RichListItem | RichList)[] };
export type RichListItem = { type: "list-item"; children: RichInline[] };
export type RichInline = RichText | { type: "link"; url: string; children: RichText[] };
export type RichText = {
  type: "text";
  text: string;
  bold?: boolean;
  italic?: boolean;
  underline?: boolean;
  strikethrough?: boolean;
  code?: boolean;
};

// --- what attributes lead to -----------------------------------------------------------------

/** At most one document, file or component. */
export type One<T extends TypeName> = { one: T };
/** One component that is always there. */
export type Always<T extends TypeName> = { always: T };
/** A list of documents, files or components. */
export type Many<T extends TypeName> = { many: T };
/** A dynamic zone: a list of different components. */
export type Zone<T extends TypeName> = { zone: T };
/** At most one document of any of some types. */
export type OneOf<T extends TypeName> = { oneOf: T };
/** A list of documents of any of some types. */
export type ManyOf<T extends TypeName> = { manyOf: T };

/** Every type by name: a content type by its singular API id, a component by `category.name`. */
export type TypeName = keyof Types;
/** The names of what `populate` can show of a type. */
export type LinkName<T extends TypeName> = keyof Types[T]["links"] & string;
/** The names of what `fields`, `filters` and `sort` can have of a type. */
export type FieldName<T extends TypeName> = keyof Types[T]["fields"] & string;
type LinkTarget<T extends TypeName, K extends LinkName<T>> =
  Types[T]["links"][K] extends One<infer U> | Always<infer U> | Many<infer U> ? U : never;

// --- what an answer shows --------------------------------------------------------------------

/**
 * A published document, component or file with what was populated:
 * `Populated<"article", "author">`, `Populated<"article", ["author.avatar", "tags"]>`, or the
 * object form, `Populated<"article", { author: { fields: ["name"] } }>`. `"*"` is one level of all.
 * What the caller may not `find` is left out of an answer, whatever it asked for.
 */
export type Populated<T extends TypeName, P = "*"> = Shown<T, { populate: P }, false>;

/** What an answer to a query shows of a type: its `fields` and `populate`; of a draft where `D` is true. */
export type Shown<T extends TypeName, Q, D extends boolean> = Flat<Columns<T, Q, D> & PopulatedLinks<T, Of<Q, "populate">, D>>;

type Flat<T> = T extends unknown ? { [K in keyof T]: T[K] } : never;
type Of<Q, K extends string> = Q extends { [N in K]: infer V } ? V : undefined;
type Fields<T extends TypeName, D extends boolean> = D extends true ? Draft<Types[T]["fields"]> : Types[T]["fields"];
type Columns<T extends TypeName, Q, D extends boolean> = Chosen<Fields<T, D>, Of<Q, "fields">>;
type Chosen<F, N> = [N] extends [string | readonly string[]]
  ? "*" extends Words<N>
    ? F
    : Pick<F, Extract<keyof F, Words<N> | "id" | "documentId">>
  : F;
type Words<N> = N extends readonly (infer S)[] ? Words<S> : N extends `${infer A},${infer B}` ? A | Words<B> : N;
type Head<S> = S extends `${infer H}.${string}` ? H : S;
type Tail<S, K extends string> = S extends `${K}.${infer R}` ? R : never;

type PopulatedLinks<T extends TypeName, P, D extends boolean> = [P] extends [never]
  ? unknown
  : [P] extends [string | readonly string[]]
    ? NamedLinks<T, Words<P>, D>
    : [P] extends [object]
      ? DescribedLinks<T, P, D>
      : unknown;
type NamedLinks<T extends TypeName, S, D extends boolean> = {
  [K in LinkName<T> as "*" extends S ? K : K extends Head<S> ? K : never]: Held<
    Types[T]["links"][K],
    { populate: Tail<S, K> },
    D
  >;
};
type DescribedLinks<T extends TypeName, P, D extends boolean> = {
  [K in LinkName<T> as K extends keyof P
    ? P[K] extends false | "false" | undefined
      ? never
      : K
    : "*" extends keyof P
      ? K
      : never]: Held<Types[T]["links"][K], K extends keyof P ? P[K] : true, D>;
};
type Held<L, Q, D extends boolean> =
  L extends One<infer T> ? Shown<T, Q, D> | null
  : L extends Always<infer T> ? (D extends true ? Shown<T, Q, D> | null : Shown<T, Q, D>)
  : L extends Many<infer T> ? Shown<T, Q, D>[]
  : L extends Zone<infer T> ? ZoneEntry<T, Q, D>[]
  : L extends OneOf<infer T> ? MorphEntry<T, Q, D> | null
  : L extends ManyOf<infer T> ? MorphEntry<T, Q, D>[]
  : never;
type ZoneEntry<T extends TypeName, Q, D extends boolean> =
  On<T, Q> extends infer U extends TypeName ? (U extends TypeName ? Flat<{ __component: U } & Shown<U, OnQuery<U, Q>, D>> : never) : never;
type MorphEntry<T extends TypeName, Q, D extends boolean> =
  On<T, Q> extends infer U extends TypeName ? (U extends TypeName ? Flat<{ __type: Types[U]["uid"] } & Shown<U, OnQuery<U, Q>, D>> : never) : never;
type On<T extends TypeName, Q> = Q extends { on: infer O } ? (T extends TypeName ? (Types[T]["uid"] extends keyof O ? T : never) : never) : T;
type OnQuery<T extends TypeName, Q> = Q extends { on: infer O } ? (Types[T]["uid"] extends keyof O ? O[Types[T]["uid"]] : true) : Q;

// --- what a request asks for -----------------------------------------------------------------

/** The `populate` of a query on a type. Dotted names populate what is populated: `author.avatar`. */
export type Populate<T extends TypeName> =
  | "*"
  | Populatable<T>
  | `${Populatable<T>},${string}`
  | readonly ("*" | Populatable<T>)[]
  | PopulateObject<T>;
type Populatable<T extends TypeName> = LinkName<T> | `${LinkName<T>}.${string}`;
/** The object form of `populate`. */
export type PopulateObject<T extends TypeName> = { [K in LinkName<T>]?: boolean | "*" | PopulateOptions<Types[T]["links"][K]> } & {
  "*"?: boolean;
};
type PopulateOptions<L> = L extends Zone<infer U> | OneOf<infer U> | ManyOf<infer U>
  ? { populate?: "*" | string | readonly string[] | { [name: string]: unknown }; on?: { [N in U as Types[N]["uid"]]?: boolean | Selection<N> } }
  : L extends One<infer U> | Always<infer U> | Many<infer U>
    ? Selection<U>
    : never;
/** What to show of a type: the part of a query that `populate` can have inside. */
export type Selection<T extends TypeName> = {
  fields?: FieldList<T>;
  populate?: Populate<T>;
  filters?: Filters<T>;
  sort?: Sort<T>;
};
export type FieldList<T extends TypeName> = "*" | FieldName<T> | readonly ("*" | FieldName<T>)[];

/** Conditions on a type, and on what its attributes lead to. */
export type Filters<T extends TypeName> = { [K in FieldName<T>]?: Condition<Types[T]["fields"][K]> } & {
  [K in LinkName<T> as [LinkTarget<T, K>] extends [never] ? never : K]?: LinkFilter<LinkTarget<T, K>>;
} & { $and?: readonly Filters<T>[]; $or?: readonly Filters<T>[]; $not?: Filters<T> };
/** Conditions on the documents that an attribute leads to; a text alone is a documentId. */
export type LinkFilter<T extends TypeName> = string | null | readonly string[] | (Filters<T> & IdentityFilter);
type IdentityFilter = { $eq?: string; $ne?: string; $in?: readonly string[]; $notIn?: readonly string[]; $null?: boolean; $notNull?: boolean };
/** Conditions on one attribute: a value, a list of values, or operators. */
export type Condition<V> = Operand<V> | readonly Operand<V>[] | null | (Operators<Operand<V>> & Logic<V>);
type Operand<V> = NonNullable<V> extends string | number | boolean ? NonNullable<V> : string | number | boolean;
type Logic<V> = { $and?: readonly Condition<V>[]; $or?: readonly Condition<V>[]; $not?: Condition<V> };

/** `title`, `title:desc`, a list of such; `author.name:asc` sorts through a relation. */
export type Sort<T extends TypeName> = SortKey<T> | readonly SortKey<T>[] | SortObject<T>;
type SortOrder = "asc" | "desc";
type SortKey<T extends TypeName> = FieldName<T> | `${FieldName<T>}:${SortOrder}` | `${LinkName<T>}.${string}` | `${FieldName<T>},${string}`;
type SortObject<T extends TypeName> = { [K in FieldName<T>]?: SortOrder } & {
  [K in LinkName<T> as [LinkTarget<T, K>] extends [never] ? never : K]?: SortObject<LinkTarget<T, K>>;
};

/** A part of a list: pages, or an offset. */
export type PageQuery =
  | { page?: number; pageSize?: number; withCount?: boolean }
  | { start?: number; limit?: number; withCount?: boolean };
export type Pagination = { page: number; pageSize: number; pageCount: number; total: number };

/** A query for one document of a type. */
export type OneQuery<T extends TypeName> = Selection<T> & { locale?: Locale; status?: Status };
/** A query for a list of documents of a type. */
export type Query<T extends TypeName> = Selection<T> & { locale?: Locale | "*"; status?: Status; pagination?: PageQuery };
export type Status = "draft" | "published";

// --- what a request writes -------------------------------------------------------------------

/** The body of a document that is created published. `Partial` of it updates one, or makes a draft. */
export type Input<T extends TypeName> = Types[T]["input"];
/** A document to relate to. */
export type Reference =
  | string
  | number
  | { documentId: string; locale?: Locale; status?: Status }
  | { id: number };
/** A document of a type that the body has to name, for relations to any type. */
export type TypedReference = { __type: string } & ({ documentId: string } | { id: number });
type Position = { start?: true; end?: true; before?: string | number; after?: string | number };
type Positioned<R> = R | (({ documentId: string } | { id: number }) & { position?: Position });
/** A relation in a body: what it holds from now on, or changes of what it holds. */
export type RelationInput<R = Reference> =
  | R
  | readonly R[]
  | null
  | { set?: R | readonly R[]; connect?: Positioned<R> | readonly Positioned<R>[]; disconnect?: R | readonly R[] };
/** A media file in a body, by `id` or `documentId`. */
export type MediaInput = number | string | { id: number } | { documentId: string };

// --- the client ------------------------------------------------------------------------------

/** `@strapi/client` that knows this site: `strapi({ baseURL }) as Client<StrapiClient>`. */
export type Client<C = unknown> = Omit<C, "collection" | "single"> & {
  collection<P extends keyof Collections>(resource: P): Collection<Collections[P]>;
  single<S extends keyof Singles>(resource: S): Single<Singles[S]>;
};

/** The managers of a type, as `client.collection("articles")` returns them. */
export type Collection<T extends TypeName> = {
  find<const F extends FieldList<T> | undefined = undefined, const P extends Populate<T> | undefined = undefined, S extends Status = "published">(
    query?: AskedQuery<T, F, P, S> & { locale?: Locale | "*"; pagination?: PageQuery },
  ): Promise<{ data: ShownAnswer<T, F, P, S>[]; meta: { pagination: Pagination } }>;
  findOne<const F extends FieldList<T> | undefined = undefined, const P extends Populate<T> | undefined = undefined, S extends Status = "published">(
    documentId: string,
    query?: AskedQuery<T, F, P, S> & { locale?: Locale },
  ): Promise<OneAnswer<T, F, P, S>>;
  create<const F extends FieldList<T> | undefined = undefined, const P extends Populate<T> | undefined = undefined>(
    data: Partial<Input<T>>,
    query: AskedQuery<T, F, P, "draft"> & { status: "draft"; locale?: Locale },
  ): Promise<OneAnswer<T, F, P, "draft">>;
  create<const F extends FieldList<T> | undefined = undefined, const P extends Populate<T> | undefined = undefined>(
    data: Input<T>,
    query?: AskedQuery<T, F, P, "published"> & { locale?: Locale },
  ): Promise<OneAnswer<T, F, P, "published">>;
  update<const F extends FieldList<T> | undefined = undefined, const P extends Populate<T> | undefined = undefined, S extends Status = "published">(
    documentId: string,
    data: Partial<Input<T>>,
    query?: AskedQuery<T, F, P, S> & { locale?: Locale },
  ): Promise<OneAnswer<T, F, P, S>>;
  delete(documentId: string, query?: { locale?: Locale }): Promise<void>;
};
/** The manager of a single type, as `client.single("home")` returns it. */
export type Single<T extends TypeName> = {
  find<const F extends FieldList<T> | undefined = undefined, const P extends Populate<T> | undefined = undefined, S extends Status = "published">(
    query?: AskedQuery<T, F, P, S> & { locale?: Locale },
  ): Promise<OneAnswer<T, F, P, S>>;
  update<const F extends FieldList<T> | undefined = undefined, const P extends Populate<T> | undefined = undefined, S extends Status = "published">(
    data: Partial<Input<T>>,
    query?: AskedQuery<T, F, P, S> & { locale?: Locale },
  ): Promise<OneAnswer<T, F, P, S>>;
  delete(query?: { locale?: Locale }): Promise<void>;
};
type AskedQuery<T extends TypeName, F, P, S> = {
  fields?: F;
  populate?: P & Known<T, P>;
  filters?: Filters<T>;
  sort?: Sort<T>;
  status?: S;
};
// Refuses names in the object form of populate that the type does not have.
type Known<T extends TypeName, P> = P extends string | readonly unknown[] | undefined
  ? unknown
  : { [K in Exclude<keyof P, LinkName<T> | "*">]: never };
type ShownAnswer<T extends TypeName, F, P, S> = Shown<T, { fields: F; populate: P }, S extends "draft" ? true : false>;
type OneAnswer<T extends TypeName, F, P, S> = { data: ShownAnswer<T, F, P, S>; meta: {} };
