// Resizes images with sharp, in the folder of whose package this runs. Reads a list of jobs as JSON from standard input,
// and prints the processor time of each job in milliseconds.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const sharp = createRequire(`${process.cwd()}/package.json`)("sharp");
const taken = [];
for (const { source, target, width, format, options } of JSON.parse(readFileSync(0, "utf8"))) {
  const before = process.cpuUsage();
  await sharp(source).rotate().resize(width).toFormat(format, options).toFile(target);
  const { user, system } = process.cpuUsage(before);
  taken.push((user + system) / 1000);
}
console.log(JSON.stringify(taken));
