/** URLs of the server. Only this module depends on where the page's own files are. */

/** The folder of this page's files, such as /studio/-/0123abcd/. */
export const FILES = new URL("./", import.meta.url);
/** The URL of the studio, such as /studio/. */
export const STUDIO = new URL("../../", FILES);
/** The URL of the site, which a proxy may serve under a path. */
export const SITE = new URL("../", STUDIO);
