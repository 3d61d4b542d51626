/** Addresses of pictures in the size in which the studio shows them (docs/images.md). */

import { fileAddress } from "./api.js";

const TRANSFORMED = /\.(jpe?g|png|webp|avif|gif|tiff?|bmp)$/i;
const MAX_DENSITY = 2; // device pixels for each CSS pixel

let isEnabled = false;

/** Set whether the server transforms pictures. @param {boolean} enabled */
export function enableTransformations(enabled) {
  isEnabled = enabled;
}

/**
 * A place for a picture: its width and height in CSS pixels. `cover` fills the place, and `inside` shows all of the
 * picture.
 * @typedef {{width: number, height: number, fit: "cover" | "inside"}} Place
 */

/**
 * Return the attributes of an `img` element that shows a picture in a place. If the server does not transform the
 * picture, or refuses to, the element shows `small`.
 * @param {{url: string, updatedAt?: string, width?: number | null, height?: number | null}} picture
 * @param {Place} place
 * @param {string} small  The URL of a smaller version of the picture.
 */
export function pictureIn(picture, place, small) {
  const src = fileAddress(small, picture.updatedAt);
  if (!isEnabled || !TRANSFORMED.test(new URL(fileAddress(picture.url)).pathname)) return { src };
  const srcset = densitiesOf(picture, place).map((density) => {
    const address = fileAddress(picture.url, picture.updatedAt);
    return `${transformed(address, { ...place, dpr: density, format: "auto" })} ${density}x`;
  });
  return { src, srcset: srcset.join(", ") };
}

/** Show the smaller version instead of a picture that can't be loaded. @param {Event} event */
export function showSmaller({ currentTarget }) {
  /** @type {HTMLImageElement} */ (currentTarget).removeAttribute("srcset");
}

/**
 * Return the densities in which a picture has enough pixels for a place. With more, a browser would show it too small.
 * @param {{width?: number | null, height?: number | null}} picture
 * @param {Place} place
 */
function densitiesOf({ width, height }, place) {
  if (place.fit === "cover" || !width || !height) return place.fit === "cover" ? [1, MAX_DENSITY] : [1];
  const most = Math.floor(100 * Math.min(MAX_DENSITY, Math.max(width / place.width, height / place.height))) / 100;
  return most > 1 ? [1, most] : [1];
}

/** @param {string} url @param {Record<string, string | number>} parameters */
function transformed(url, parameters) {
  const address = new URL(url);
  for (const [name, value] of Object.entries(parameters)) address.searchParams.set(name, String(value));
  return address.href;
}
