/**
 * The interface between a list and the things that it shows.
 *
 * A resource describes the columns, filters and choices, how a page is requested, and the actions for rows. The modules
 * in this folder use nothing else.
 */

/**
 * @typedef {import("./state.js").ListState} ListState
 * @typedef {import("./operators.js").Filterable} Filterable
 */

/**
 * @typedef {object} Row
 * @property {string} id  The row's id, which is unique in the list.
 * @property {string} title
 * @property {Record<string, any>} values  Values by column name.
 */

/**
 * @typedef {object} Rows  One page of rows.
 * @property {Row[]} rows
 * @property {number} total
 * @property {number} pages
 */

/**
 * @typedef {object} Column
 * @property {string} name
 * @property {string} label
 * @property {string} type  An attribute type, which determines how values are displayed.
 * @property {string} sort  The column's name in the parameter `sort`, or "" if the list can't be sorted by it.
 * @property {string} [related]  The title attribute of the documents to which values refer.
 * @property {(row: Row) => any} [cell]  Return the content of the cell if it is not simply the value. For the title
 *   column, it is the content of the link.
 */

/**
 * @typedef {object} Choice  A menu that is always shown above the list, for example for the language.
 * @property {string} name  The name of the URL parameter.
 * @property {string} label
 * @property {string} usual  The default value, which is left out of the URL.
 * @property {boolean} [narrows]  Whether the choice can reduce the number of rows. "Show all" then resets it.
 * @property {{value: string, label: string}[]} options
 * @property {(chosen: string) => {value: string, label: string}[]} [useOptions]  A hook that returns the options if
 *   they have to be loaded.
 */

/**
 * @typedef {object} BulkAction  An action for several rows.
 * @property {string} name
 * @property {string} label
 * @property {string} done  The word for the result, as in "3 documents published".
 * @property {boolean} [removes]  Whether the action removes the rows.
 * @property {(row: Row) => boolean} concerns  Return whether the action has any effect on a row.
 * @property {(rows: Row[], state: ListState) => Promise<string[] | null>} run  Perform the action for all rows or
 *   none. Resolves to the ids with which it can be undone, or to null if the user has cancelled it. If it rejects, the
 *   error's `about` is the title of the row that caused the error, if known, and `done` the rows that were changed
 *   anyway.
 */

/**
 * @typedef {object} Resource
 * @property {string} name  The name under which the browser stores the chosen columns.
 * @property {string} heading
 * @property {(count: number) => string} countText  Return a number of rows as text, such as "3 documents".
 * @property {string} selectionLabel  The name of the bar for selected rows, such as "Selected documents".
 * @property {Column} title  The first column, whose cells link to the rows' pages.
 * @property {Column[]} fixed  Columns that are always shown.
 * @property {Column[]} columns  Columns that the user can choose.
 * @property {string[]} usualColumns  The names of the columns that are shown by default.
 * @property {Filterable[]} filters
 * @property {Choice[]} choices
 * @property {string} usualSort
 * @property {boolean} isSingle  Whether there is at most one row, so that searching and sorting are not offered.
 * @property {string} emptyText  The text that is shown if there are no rows.
 * @property {(state: ListState) => string} placeNote  Return the text after the number of rows, such as " in English".
 * @property {(params?: URLSearchParams) => string} address  Return the URL of the list.
 * @property {(row: Row, state: ListState) => string} addressOf  Return the URL of a row's page, or "" if it has none.
 * @property {(state: ListState) => {label: string, to: string} | null} create  Return the link for creating a row.
 * @property {{label: string, to: string}[]} links  The links below the list. One that is not available has no URL.
 * @property {BulkAction[]} actions
 * @property {(state: ListState) => boolean} [hasColumns]  Return whether the rows are shown in columns, as by default.
 * @property {any} [Rows]  The component that shows the rows, with the props of `Table`, if they are not in a table.
 * @property {(state: ListState, columns: Column[]) => object} query  Return the parameters for requesting a page.
 * @property {(query: object, columns: Column[], signal: AbortSignal) => Promise<Rows>} load
 */

export {};
