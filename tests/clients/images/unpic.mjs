import { transformUrl } from "unpic";

const url = `${process.env.CMS}/uploads/night-ferry.jpg`;

export const card = transformUrl({ url, provider: "directus", width: 400, height: 300, format: "webp" });
export const banner = transformUrl({ url, provider: "imgix", width: 800 }, { imgix: { ar: "2:1", crop: "entropy" } });
