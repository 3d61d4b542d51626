import { RenderPlugin } from "@11ty/eleventy";
import { eleventyImageTransformPlugin } from "@11ty/eleventy-img";

export default function (config) {
  config.addPlugin(RenderPlugin);
  // Downloads the pictures that pages show and scales them.
  config.addPlugin(eleventyImageTransformPlugin, { formats: ["auto"], widths: [960] });
  return { dir: { input: "src" } };
}
