import { createImageUrlBuilder } from "@sanity/image-url";

const builder = createImageUrlBuilder({ projectId: "site", dataset: "uploads" });

/** Return the builder for an image in Bifolio, and a function for its URLs. */
export function imageOf({ url, width, height, ext }) {
  const image = builder.image(`image-x-${width}x${height}-${ext.slice(1)}`);
  return { image, address: (changed) => `${process.env.CMS}${url}${new URL(changed.url()).search}` };
}

const { image, address } = imageOf({ url: "/uploads/night-ferry.jpg", width: 960, height: 540, ext: ".jpg" });
export const part = address(image.rect(480, 0, 480, 540).width(300).auto("format"));
