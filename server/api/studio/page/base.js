/** Addresses of the server: the one place that knows where the page's own files are. */

/** The files of this page, such as /studio/-/0123abcd/. */
export const FILES = new URL("./", import.meta.url);
/** The studio, such as /studio/. */
export const STUDIO = new URL("../../", FILES);
/** The site, which may be below a path of a proxy. */
export const SITE = new URL("../", STUDIO);
