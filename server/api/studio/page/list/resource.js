/**
 * What a list needs to know of what it shows. A resource says which columns, filters and choices there are, how a page
 * of it is requested, and what can be done with rows; the modules of this folder know nothing else of it.
 */

/**
 * @typedef {import("./state.js").ListState} ListState
 * @typedef {import("./operators.js").Filterable} Filterable
 */

/**
 * @typedef {object} Row
 * @property {string} id  Of which there is one in the list.
 * @property {string} title
 * @property {Record<string, any>} values  By the names of columns.
 */

/**
 * @typedef {object} Rows  One page.
 * @property {Row[]} rows
 * @property {number} total
 * @property {number} pages
 */

/**
 * @typedef {object} Column
 * @property {string} name
 * @property {string} label
 * @property {string} type  Of an attribute; it says how a value is shown.
 * @property {string} sort  What `sort` calls it; "" if the list can't be sorted by it.
 * @property {string} [related]  The attribute that names what a value leads to.
 * @property {(row: Row) => any} [cell]  What a row has there, if it is not its value.
 */

/**
 * @typedef {object} Choice  A choice that is always above the list, such as of the language.
 * @property {string} name  As the address has it.
 * @property {string} label
 * @property {string} usual  The value that the address leaves out.
 * @property {boolean} [narrows]  Whether the list may have fewer rows by it, all of which "Show all" shows.
 * @property {{value: string, label: string}[]} options
 */

/**
 * @typedef {object} BulkAction  Something that can be done with several rows at once.
 * @property {string} name
 * @property {string} label
 * @property {string} done  What the rows are after it: "3 documents published".
 * @property {boolean} [removes]  Whether the rows are gone after it.
 * @property {(row: Row) => boolean} concerns  Whether there is anything to do with a row.
 * @property {(rows: Row[], state: ListState) => Promise<string[]>} run  Do it to all rows or none; resolves to the ids
 *   to undo it by. It rejects with `about`, the title of the row that is to blame, if it knows that.
 */

/**
 * @typedef {object} Resource
 * @property {string} name  The browser remembers the chosen columns by it.
 * @property {string} heading
 * @property {{one: string, many: string}} noun  "document" and "documents".
 * @property {Column} title  The first column, whose cells lead to the rows' pages.
 * @property {Column[]} fixed  Columns that are always shown.
 * @property {Column[]} columns  Columns that can be chosen.
 * @property {string[]} usualColumns  The names of those that are shown until some are chosen.
 * @property {Filterable[]} filters
 * @property {Choice[]} choices
 * @property {string} usualSort
 * @property {boolean} isSingle  Whether there is one row at most, which nothing is searched or sorted for.
 * @property {string} emptyText  What is said if there is no row at all.
 * @property {(state: ListState) => string} placeNote  What is said behind the count, such as " in English".
 * @property {(params?: URLSearchParams) => string} address  Of the list.
 * @property {(row: Row, state: ListState) => string} addressOf  Of the page of a row; "" if it has none.
 * @property {(state: ListState) => {label: string, to: string} | null} create  What leads to a new row.
 * @property {{label: string, to: string}[]} links  What is below the list.
 * @property {BulkAction[]} actions
 * @property {(state: ListState, columns: Column[]) => object} query  The parameters of a page.
 * @property {(query: object, columns: Column[], signal: AbortSignal) => Promise<Rows>} load
 */

export {};
