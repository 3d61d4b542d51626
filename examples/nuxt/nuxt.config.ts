export default defineNuxtConfig({
  compatibilityDate: "2025-07-15",
  // NUXT_QUIRE_URL, NUXT_QUIRE_TOKEN and NUXT_PREVIEW_SECRET set these when the server starts.
  runtimeConfig: {
    quireUrl: "http://127.0.0.1:1337",
    quireToken: "",
    previewSecret: "",
  },
});
