"""The rule `broken-link`: which links are broken, and which can't be known to be."""

import json
from pathlib import Path

import pytest

from server.site.check.audit import Audit
from server.site.check.document_rules import check_text
from server.site.check.links import LinkTargets
from server.site.check.survey import survey_site
from server.site.check.unsaved import SavedSite, survey_unsaved
from tests.git import commit_all, git
from tests.site.check.sites import SETTINGS, TYPES, check, page, places
from tests.sites import STRING, collection, load, opened, schema, translated, write

FILES: dict[str, str | bytes] = {
    "content/pages/a.md": page("# First\n\n## Second {#own}\n\n## Second"),
    "content/pages/b/c.md": page("# C"),
    "content/notes/n.yaml": "text: N\n",
    "content/uploads/map.txt": "map",
    "content/uploads/old/sea chart.png": b"\x89PNG\r\n\x1a\n",
}
FIX = "Correct the link, or add the file."
# The Markdown in content/pages/x.md, and whether its only link is broken.
BODIES: dict[str, tuple[str, bool]] = {
    "a document": ("[x](a.md)", False),
    "a document with a query": ("[x](a.md?plain=1)", False),
    "a document in a folder": ("[x](./b/c.md)", False),
    "a document of another type": ("[x](../notes/n.yaml)", False),
    "a document that is not there": ("[x](d.md)", True),
    "a document in a folder that is not there": ("[x](../pagse/a.md)", True),
    "a file of the repository": ("[x](../../site.md)", True),
    "a heading": ("[x](a.md#first)", False),
    "a heading with an id": ("[x](a.md#own)", False),
    "a heading that occurs twice": ("[x](a.md#second-1)", False),
    "a heading that is not there": ("[x](a.md#third)", True),
    "a heading of this page": ("[x](#here)\n\n# Here", False),
    "a heading of this page, by another processor": ("[x](#-it-s-here)\n\n# It's here", False),
    "a heading that this page lacks": ("[x](#there)\n\n# Here", True),
    "the top": ("[x](#)[y](#top)[z](#:~:text=a)", False),
    "a media file": ("[x](/uploads/map.txt)", False),
    "a media file with a space": ("[x](/uploads/old/sea%20chart.png)", False),
    "a size of a picture": ("[x](/uploads/old/small_sea%20chart.png)", False),
    "a media file by its path": ("[x](../uploads/map.txt)", False),
    "a media file that is not there": ("[x](/uploads/mpa.txt)", True),
    "a picture that is not there": ("![x](/uploads/x.png)", True),
    "a picture beside the page": ("![x](x.png)", True),
    "a picture in HTML": ('<img alt="x" src="x.png">', True),
    "a link in HTML": ('<p><a class="b"\nhref="d.md">x</a></p>', True),
    "no destination": ("[x]()", True),
    "a name that nothing defines": ("[x][y]", True),
    "a name": ("[x][y]\n\n[y]: a.md", False),
    "a name that Kramdown finds": ("[x][y]\nText\n[y]: a.md", False),
    "a name that leads nowhere": ("[x][y] [z][y]\n\n[y]: d.md", True),
    # Addresses of pages are made by the front end.
    "an address": ("[x](/pages/d) [y](../d/) [z](d) [u](d.html) [v](/d.md)", False),
    "another site": ("[x](https://example.org/d.md) [y](mailto:a@b.c) [z](//example.org/d.md)", False),
    "a template": ("[x]({{< ref \"d.md\" >}}) [y]({% link d.md %}) [z](${d}.md)", False),
    "code": ("`[x](d.md)`\n\n```\n[x](d.md)\n```", False),
    "a comment": ("<!-- [x](d.md) -->", False),
}  # fmt: skip


@pytest.mark.parametrize("name", BODIES)
def test_a_link_in_the_body(tmp_path: Path, name: str) -> None:
    body, is_broken = BODIES[name]
    problems = check(tmp_path, {**FILES, "content/pages/x.md": page(body)})
    found = places(problems, "broken-link")
    assert [path for path, *_ in found] == ["pages/x.md"] * is_broken, problems
    assert [problem.rule for problem in problems if problem.rule != "broken-link"] == []


def test_it_says_where_what_and_how_to_fix_it(tmp_path: Path) -> None:
    body = "[x](cc.md), [c](../c.md), ![y](/uploads/mpa.txt), [z](a.md#frist), [u][v]\n\n[w]: d.md"
    problems = check(tmp_path, {**FILES, "content/pages/x.md": page(body, "parts: []")})
    assert [str(problem) for problem in problems] == [
        f"content/pages/x.md:{place}"
        for place in (
            f"6:5: the link leads to content/pages/cc.md, which does not exist. {FIX}",
            '6:17: the link leads to content/c.md, which does not exist. Did you mean "b/c.md"?',
            '6:32: the image leads to content/uploads/mpa.txt, which does not exist. Did you mean "map.txt"?',
            '6:55: the link leads to the heading "#frist", which does not exist in content/pages/a.md. '
            'Did you mean "#first"?',
            '6:68: the link refers to "[v]", which is not defined in this text. '
            'Add a line "[v]: …" with the destination, or correct the name.',
            f"8:6: the link leads to content/pages/d.md, which does not exist. {FIX}",
        )
    ]


BLOCKS = [
    {"type": "heading", "level": 2, "children": [{"type": "text", "text": "Here"}]},
    {
        "type": "paragraph",
        "children": [
            {"type": "link", "url": "/uploads/map.txt", "children": [{"type": "text", "text": "x"}]},
            {"type": "link", "url": "/uploads/mpa.txt", "children": [{"type": "text", "text": "y"}]},
        ],
    },
]


def test_links_in_values_are_found_at_their_places(tmp_path: Path) -> None:
    values = {"title": "A", "blocks": BLOCKS}
    files = {
        "content/notes/x.yaml": "text: |\n  [x](../pages/a.md)\n\n  [y](d.md) and\n  [z](e.md)\n",
        "content/notes/y.toml": 'text = "[y](d.md)"\n',
        "content/notes/z.yaml": "text: >-\n  [y](d.m\\\n  d)\n",
        "content/pages/x.json": json.dumps(values, indent=1),
        "content/pages/z.md": page("", "parts:", "- __component: shared.text", "  text: '[y](d.md)'"),
    }
    problems = check(tmp_path, {**FILES, **files})
    line = next(i for i, text in enumerate(files["content/pages/x.json"].split("\n"), 1) if "mpa.txt" in text)
    assert places(problems, "broken-link") == [
        ("notes/x.yaml", 4, 7),
        ("notes/x.yaml", 5, 7),
        ("notes/y.toml", 1, 13),
        ("pages/x.json", line, 13),
        ("pages/z.md", 5, 14),
    ]
    assert [problem.at for problem in problems][-1] == ("parts", 0, "text")


def test_a_text_that_is_not_saved_is_checked_by_itself(tmp_path: Path) -> None:
    site = load(tmp_path, {**TYPES, "site.yaml": SETTINGS, **FILES, "content/pages/x.md": page("[x](a.md)")})
    audit = Audit(site.root, site.state.settings, site.state.snapshot)
    targets = LinkTargets(audit)
    for text, lines in (
        (page("[x](b.md)"), [5]),
        (page("a\n[x](#y)"), [6]),
        ("---\na", []),
        (page("# Y\n[x](#y)"), []),
    ):
        problems = check_text(audit, "content/pages/x.md", text, None, targets)
        assert [problem.line for problem in problems] == lines
    assert check_text(audit, "elsewhere.md", "[x](b.md)", None, targets) == ()


def test_links_in_a_file_with_an_invalid_value(tmp_path: Path) -> None:
    files = {
        "content/pages/x.md": page("[x](d.md)\n[y](e.md)", "blocks: [1]"),
        "content/pages/y.json": json.dumps({"title": "A", "blocks": [*BLOCKS, 1]}),
        "content/pages/z.md": page("![x](x.png)\n[y](e.md) <!-- bifolio-ignore: broken-link -->", "a: ["),
    }
    problems = check(tmp_path, {**FILES, **files})
    errors = [(problem.path, problem.rule) for problem in problems if problem.severity == "error"]
    assert errors == list(zip(files, ("value", "value", "syntax"), strict=True))
    found = [(path, line) for path, line, _ in places(problems, "broken-link")]
    assert found == [("pages/x.md", 6), ("pages/x.md", 7), ("pages/y.json", 1), ("pages/z.md", 6)]


def test_a_tree_of_a_site_generator(tmp_path: Path) -> None:
    files = {
        "content-types/page.json": TYPES["content-types/page.json"].replace(
            '"draftAndPublish"', '"files": "docs/{name}.md", "draftAndPublish"'
        ),
        "docs/a.md": page("[b](b.md) [c](a/picture.png) ![d](picture.png) ![e](other.png)"),
        "docs/b.md": page("[a](./a.md#a) [x](../README.md)"),
        "docs/a/picture.png": "",
        "README.md": "# Us",
    }
    problems = check(tmp_path, files)
    assert [(p.path, p.column) for p in problems if p.rule == "broken-link"] == [
        ("docs/a.md", 53),
        ("docs/b.md", 5),
    ]


# --- aliases of paths -----------------------------------------------------------------------------

ALIASES = """{
  // See "https://docs.astro.build" /* not a comment */
  "extends": ["astro/tsconfigs/strict", "./config/base"],
  "compilerOptions": {
    "baseUrl": ".", /* of the paths, */
    "paths": {
      "~/*": ["src/*", "./content/*"],
      "~/icons/*": ["content/uploads/*.svg",],
      "@logo": ["content/uploads/map.txt"],
      "@out/*": ["../*"],
      "*": ["src/*"],
    },
  },
}
"""
BASE = '{"compilerOptions": {"paths": {"@/*": ["../content/*"]}}}'
# A link in content/pages/x.md, and the file that is reported as missing.
ALIASED: dict[str, tuple[str, str]] = {
    "a file": ("~/assets/a.png", ""),
    "a file of the second path": ("~/pages/a.md", ""),
    "a heading": ("~/pages/a.md#first", ""),
    "a file that is not there": ("~/assets/b.png", "src/assets/b.png"),
    "the longest alias": ("~/icons/b.png", "content/uploads/b.png.svg"),
    "an alias without an asterisk": ("@logo", ""),
    "an alias that leads out of the site": ("@out/b.png", ""),
    "an alias that only the front end has": ("@/b.png", ""),
    "a file whose name begins with the mark of an alias": ("@2x.png", "content/pages/@2x.png"),
    "a file beside the page": ("assets/a.png", "content/pages/assets/a.png"),
}


@pytest.mark.parametrize("config", ["tsconfig.json", "jsconfig.json"])
def test_a_link_with_a_path_alias(tmp_path: Path, config: str) -> None:
    body = "\n".join(f"![x]({link})" for link, _ in ALIASED.values())
    files = {config: ALIASES, "src/assets/a.png": "", "content/pages/x.md": page(body)}
    messages = [problem.message for problem in check(tmp_path, {**FILES, **files})]
    missing = [path for _, path in ALIASED.values() if path]
    assert messages == [f"the image leads to {path}, which does not exist" for path in missing]


def test_a_path_alias_of_an_extended_configuration(tmp_path: Path) -> None:
    config = '{"extends": "./config/base", "compilerOptions": {"strict": true}}'
    files = {"tsconfig.json": config, "config/base.json": BASE}
    links = page("[a](@/pages/a.md)\n[b](@/pages/b.md)\n[c](~/c.md)")
    problems = check(tmp_path, {**FILES, **files, "content/pages/x.md": links})
    assert places(problems, "broken-link") == [("pages/x.md", 6, 5)]
    endless = {"tsconfig.json": '{"extends": "./tsconfig"}', "content/pages/x.md": page("[a](~/a.md)")}
    assert check(tmp_path, {**FILES, **endless}) == []


@pytest.mark.parametrize("config", ["", "[]", '{"compilerOptions": {"paths": {"~/*": "src", "@/*": [1]}}}'])
def test_a_path_alias_without_a_configuration_is_not_checked(tmp_path: Path, config: str) -> None:
    files = {"tsconfig.json": config} if config else {}
    links = page("![x](~/a.png) ![y](@/b.png)\n\n[x](~/a.md#b)")
    assert check(tmp_path, {**FILES, **files, "content/pages/x.md": links}) == []


def test_no_link_leads_out_of_a_level_that_is_off(tmp_path: Path) -> None:
    write(tmp_path, FILES)
    assert check(tmp_path, {"content/pages/x.md": page("[x](d.md)")}, "broken-link: off") == []
    (problem,) = check(tmp_path, {"content/pages/x.md": page("[x](d.md)")}, "broken-link: error")
    assert problem.severity == "error"


# --- addresses of pages ---------------------------------------------------------------------------

LIST = {"type": "array"}
SITE_WITH_PAGES: dict[str, str | bytes] = {
    **collection(
        "post", {"title": STRING, "slug": STRING, "aliases": LIST, "body": {"type": "richtext"}}, drafts=True
    ),
    **collection(
        "guide", {"title": translated(STRING), "body": translated({"type": "richtext"})}, localized=True
    ),
    **collection("note", {"text": {"type": "richtext"}}),
    **collection("entry", {"day": {"type": "date"}, "slug": STRING}),
    "content-types/about.json": schema("about", {"title": STRING}, single=True),
    "site.yaml": """locales: {default: en, available: [en, fr]}
urls:
  post: https://example.org/blog/{slug}
  guide: {en: "https://docs.example.org/{name}/", fr: "https://docs.example.org/fr/{name}/"}
  entry: https://example.org/{day.year}/{day.month}/{slug}
  about: https://example.org/who/we-are
  area: https://example.org/areas/{+path}
""",
    "content/posts/1.md": page("## Bell", "slug: fog at sea", "aliases: [/old/fog, mist]"),
    "content/posts/2.draft.md": "---\ntitle: Draft\nslug: soon\n---\n",
    "content/guides/start/one.md": "---\ntitle: One\n---\n\n# One\n",
    "content/guides/start/one.fr.md": "---\ntitle: Un\n---\n\n# Un\n",
    "content/entrys/e.yaml": "day: 2026-03-01\nslug: e\n",
    **collection("area", {"path": STRING}),
    "content/areas/1.yaml": "path: /north/sea/\n",
    "content/about.yaml": "title: Us\n",
}
# A link in a note, which has no page itself, and what is wrong with it.
ADDRESSES: dict[str, tuple[str, str]] = {
    "a page": ("/blog/fog%20at%20sea", ""),
    "a page with a slash, a query and a heading": ("/blog/fog%20at%20sea/?plain=1#bell", ""),
    "a heading that is not there": (
        "/blog/fog%20at%20sea#bel",
        'the heading "#bel", which does not exist in content/posts/1.md. Did you mean "#bell"?',
    ),
    "a page that is not there": (
        "/blog/fog-at-see",
        '/blog/fog-at-see, but no post has this address. Did you mean "/blog/fog%20at%20sea"?',
    ),
    "a draft": ("/blog/soon", ""),
    "an alias": ("/old/fog", ""),
    "an alias beside the page": ("/blog/mist", ""),
    "an alias that is not there": (
        "/blog/haze",
        "/blog/haze, but no post has this address. Correct the link, or add an alias.",
    ),
    "a list that the front end makes": ("/blog", ""),
    "another page of the front end": ("/blog/fog/comments", ""),
    "a feed": ("/blog/feed.xml", ""),
    "a name with slashes": ("/start/one/#one", ""),
    "another locale": (
        "/fr/start/one#one",
        'the heading "#one", which does not exist in content/guides/start/one.fr.md.',
    ),
    "a page that may belong to the front end": ("/start/two", ""),
    "a date": ("/2026/03/e", ""),
    "another date, which may belong to the front end": ("/2026/04/e", ""),
    "a single type": ("/who/we-are", ""),
    "a value with slashes": ("/areas/north/sea/", ""),
    "another value with slashes": ("/areas/north/lake", "/areas/north/lake, but no area has this address."),
    "a folder outside of the site": ("/../../etc/passwd", ""),
}  # fmt: skip


@pytest.mark.parametrize("name", ADDRESSES)
def test_a_link_to_the_address_of_a_page(tmp_path: Path, name: str) -> None:
    link, fault = ADDRESSES[name]
    write(tmp_path, {**SITE_WITH_PAGES, "content/notes/n.yaml": f"text: '[x]({link})'\n"})
    messages = [str(problem) for problem in survey_site(opened(tmp_path)).problems]
    assert [message.partition("the link leads to ")[2][: len(fault)] for message in messages] == [
        fault
    ] * bool(fault)


def test_an_address_is_on_the_host_of_the_page_with_the_link(tmp_path: Path) -> None:
    link = "---\ntitle: Two\nslug: two\n---\n\n[x](/blog/nothing)\n"
    write(tmp_path, {**SITE_WITH_PAGES, "content/guides/two.md": link, "content/posts/3.md": link})
    found = survey_site(opened(tmp_path)).problems
    assert places(list(found), "broken-link") == [("posts/3.md", 6, 5)]


def test_a_page_whose_file_is_invalid_is_not_a_broken_link(tmp_path: Path) -> None:
    broken = {"content/posts/3.md": "---\ntitle: [\n---\n", "content/notes/n.yaml": "text: '[x](/blog/3)'\n"}
    write(tmp_path, {**SITE_WITH_PAGES, **broken})
    assert [problem.rule for problem in survey_site(opened(tmp_path)).problems] == ["syntax"]


def test_links_with_addresses_are_found_in_an_unsaved_text(tmp_path: Path) -> None:
    path, text = "content/notes/n.yaml", "text: '[x](/blog/new) [y](/blog/newer)'\n"
    new = {"content/posts/n.md": "---\nslug: new\n---\n", path: text}
    write(tmp_path, {**SITE_WITH_PAGES, path: "text: x\n"})
    found = survey_unsaved(SavedSite.from_site(opened(tmp_path)).with_texts(new)).problems
    assert [(problem.path, problem.column) for problem in found] == [(path, 27)]


# --- addresses of pages in a locale ---------------------------------------------------------------

GUIDE = page("## Here")
SITE_WITH_LOCALES: dict[str, str | bytes] = {
    **collection(
        "guide",
        {"title": translated(STRING), "body": translated({"type": "richtext"})},
        localized=True,
        files="{locale}/{name}.md",
    ),
    "en/typing.md": GUIDE,
    "fr/typing.md": GUIDE,
    "en/only.md": GUIDE,
    "en/deploy/index.md": GUIDE,
    "fr/typage.md": GUIDE,
}
URLS = {
    "one pattern": "https://docs.example.org/{locale}/{name}/",
    "a pattern for each locale": "{en: 'https://docs.example.org/en/{name}/', "
    "fr: 'https://docs.example.org/fr/{name}/'}",
}
IN_LOCALES: dict[str, tuple[str, str]] = {
    "a page": ("/fr/typing/#here", ""),
    "a page that is not there": ("/en/nothing/", "/en/nothing/, but no guide has this address. Correct the"),
    "the locale of the page with the link": ("/fr/typin/", 'has this address. Did you mean "/fr/typ'),
    "a translation that is missing, for which the front end may show another": ("/fr/only/", ""),
    "a locale that the site lacks": ("/de/nothing/", ""),
    "an index": ("/en/deploy/", ""),
    "a heading of an index": ("/en/deploy/#there", 'the heading "#there", which does not exist in en/deploy'),
    "the index of a translation that is missing": ("/fr/deploy/", ""),
    "the home page": ("/fr/", ""),
    "a picture": ("/en/tide.png", ""),
}  # fmt: skip


@pytest.mark.parametrize("urls", URLS)
@pytest.mark.parametrize("name", IN_LOCALES)
def test_a_link_to_an_address_in_a_locale(tmp_path: Path, name: str, urls: str) -> None:
    link, fault = IN_LOCALES[name]
    settings = f"{SETTINGS}urls:\n  guide: {URLS[urls]}\n"
    write(
        tmp_path,
        {**SITE_WITH_LOCALES, "site.yaml": settings, "fr/typing.md": page(f"## Here\n\n[x]({link})")},
    )
    found = [str(p) for p in survey_site(opened(tmp_path)).problems if p.rule == "broken-link"]
    assert [fault in message for message in found] == [True] * bool(fault), found


@pytest.mark.parametrize(("count", "broken"), [(9, 0), (10, 1)])
def test_a_folder_of_many_documents_has_no_other_pages(tmp_path: Path, count: int, broken: int) -> None:
    guides = {f"content/guides/start/{i}.md": GUIDE for i in range(count)}
    links = {"content/notes/n.yaml": "text: '[x](/start/nothing/) [y](/nothing/)'\n"}
    settings = "urls: {guide: 'https://docs.example.org/{name}/'}\n"
    types = {**collection("guide", {"title": STRING, "body": {"type": "richtext"}})}
    types |= collection("note", {"text": {"type": "richtext"}})
    write(tmp_path, {**types, "site.yaml": settings, **guides, **links})
    assert [p.message for p in survey_site(opened(tmp_path)).problems] == [
        "the link leads to /start/nothing/, but no guide has this address"
    ] * broken


@pytest.mark.parametrize("pattern", ["{locale}/{name}/", "{name}/"])
def test_a_former_address_leads_to_the_present_one(tmp_path: Path, pattern: str) -> None:
    link = f"/{pattern}".replace("{locale}", "en").replace("{name}", "only")
    settings = f"{SETTINGS}urls: {{guide: 'https://docs.example.org/{pattern}'}}\n"
    write(
        tmp_path,
        {**SITE_WITH_LOCALES, "site.yaml": settings, "en/typing.md": page(f"## Here\n\n[x]({link})")},
    )
    commit_all(tmp_path)
    git(tmp_path, "mv", "en/only.md", "en/renamed.md")
    git(tmp_path, "commit", "-qm", "Rename")
    [problem] = (p for p in survey_site(opened(tmp_path)).problems if p.rule == "broken-link")
    assert problem.fix == f'did you mean "{link.replace("only", "renamed")}"?'


def test_a_translation_follows_a_rename_that_is_not_committed(tmp_path: Path) -> None:
    others = {f"en/typing-{name}.md": GUIDE for name in "abc"}
    write(tmp_path, {**SITE_WITH_LOCALES, **others, "site.yaml": SETTINGS})
    (tmp_path / "fr/typage.md").unlink()
    commit_all(tmp_path)
    (tmp_path / "en/names").mkdir()
    git(tmp_path, "mv", "en/typing.md", "en/names/of-types.md")
    [problem] = survey_site(opened(tmp_path)).problems
    assert problem.path == "fr/typing.md"
    assert problem.fix == "rename it to fr/names/of-types.md, because the default locale was renamed"
