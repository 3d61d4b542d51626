// Reads what Bifolio publishes with the code of the services that use it. Input: a JSON object on stdin.
// - netlify, pages: files `_redirects`
// - requests: paths to request at Cloudflare Pages
// - sitemaps: texts, which are checked with the XML schema of sitemaps.org
// - atom: a RELAX NG schema
// - feeds: texts by name, which are checked with this schema
import { readFileSync } from "node:fs";
import { parseAllRedirects } from "@netlify/redirect-parser";
import { generateRedirectsEvaluator } from "redirects-in-workers";
import { validateXML } from "xmllint-wasm";

const ORIGIN = "https://example.org";
// The part of XHTML that sitemaps contain. The schema of sitemaps.org checks nothing in it.
const XHTML = `<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" targetNamespace="http://www.w3.org/1999/xhtml"
  elementFormDefault="qualified"><xs:element name="link"><xs:complexType>
  <xs:attribute name="rel" use="required" fixed="alternate"/>
  <xs:attribute name="hreflang" type="xs:language" use="required"/>
  <xs:attribute name="href" type="xs:anyURI" use="required"/></xs:complexType></xs:element></xs:schema>`;
const ALL = `<schema xmlns="http://www.w3.org/2001/XMLSchema">
  <import namespace="http://www.sitemaps.org/schemas/sitemap/0.9" schemaLocation="sitemap.xsd"/>
  <import namespace="http://www.w3.org/1999/xhtml" schemaLocation="xhtml.xsd"/></schema>`;

const input = JSON.parse(readFileSync(0, "utf8"));
console.log = console.error; // Only the result is written to stdout.

const netlify = await parseAllRedirects({ redirectsFiles: [input.netlify], minimal: true, configRedirects: [] });
const evaluate = generateRedirectsEvaluator(readFileSync(input.pages, "utf8"), { maxLineLength: 1000, maxStaticRules: 2000 });
const pages = [];
for (const path of input.requests) {
  const answer = await evaluate(new Request(ORIGIN + path), {});
  pages.push(answer && [answer.status, new URL(answer.headers.get("location"), ORIGIN).href]);
}
const sitemaps = [];
const schema = readFileSync(new URL("node_modules/sitemap/schema/sitemap.xsd", import.meta.url), "utf8");
for (const text of input.sitemaps) {
  const checked = await validateXML({
    xml: { fileName: "s.xml", contents: text },
    schema: [{ fileName: "all.xsd", contents: ALL }],
    preload: [{ fileName: "sitemap.xsd", contents: schema }, { fileName: "xhtml.xsd", contents: XHTML }],
  });
  sitemaps.push(checked.errors.map((error) => error.rawMessage));
}
const feeds = {};
for (const [name, contents] of Object.entries(input.feeds)) {
  const checked = await validateXML({
    xml: { fileName: "f.xml", contents },
    schema: [{ fileName: "atom.rng", contents: input.atom }],
    extension: "relaxng",
  });
  feeds[name] = checked.errors.map((error) => error.rawMessage);
}
const errors = netlify.errors.map(String);
process.stdout.write(JSON.stringify({ netlify: netlify.redirects, errors, pages, sitemaps, feeds }));
