export default defineNuxtConfig({
  compatibilityDate: "2025-07-15",
  // NUXT_BIFOLIO_URL, NUXT_BIFOLIO_TOKEN and NUXT_PREVIEW_SECRET set these when the server starts.
  runtimeConfig: {
    bifolioUrl: "http://127.0.0.1:1337",
    bifolioToken: "",
    previewSecret: "",
  },
});
