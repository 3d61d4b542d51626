import directus from "@nuxt/image/runtime/providers/directus";
import imgix from "@nuxt/image/runtime/providers/imgix";

const baseURL = process.env.CMS;
const path = "/uploads/night-ferry.jpg";

export const card = directus().getImage(path, { baseURL, modifiers: { width: 400, height: 300, format: "webp" } });
export const whole = imgix().getImage(path, { baseURL, modifiers: { width: 400, height: 400, fit: "contain" } });
