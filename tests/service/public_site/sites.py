"""A site with public URLs, feeds, drafts, private attributes and hidden content types."""

from tests.api.test_upload import picture
from tests.sites import STRING, collection, documents, relation, translated

SETTINGS = """\
name: Tides & lights
locales: {default: en, available: [en, fr]}
roles:
  public:
    article: [find, findOne]
    author: [find]
    page: [find]
urls:
  article: {en: "https://example.org/articles/{slug}", fr: "https://example.org/fr/articles/{slug}"}
  page: https://example.org/{name}
  memo: https://example.org/memos/{slug}
  upload: https://cms.example.org
feeds:
  news:
    type: article
    description: All <news>
  everything: {type: [article, page, memo], locale: "*", title: All}
  red: {type: article, filters: {slug: {$startsWith: red}}, sort: slug, item: {summary: none, author: author}}
  memos: {type: memo}
"""
FILES = {
    "site.yaml": SETTINGS,
    **collection(
        "article",
        {
            "title": translated(STRING),
            "slug": translated({"type": "uid"}),
            "summary": translated({"type": "text"}),
            "body": translated({"type": "richtext"}),
            "publishedOn": "date",
            "note": {"type": "string", "private": True},
            "author": relation("manyToOne", "author"),
            "source": relation("manyToOne", "memo"),
            "cover": {"type": "media"},
        },
        drafts=True,
        localized=True,
    ),
    **collection("author", {"name": STRING}),
    **collection("page", {"heading": STRING, "text": {"type": "blocks"}}),
    **collection("memo", {"title": STRING, "slug": {"type": "uid"}}, drafts=True),
    **documents(
        "articles",
        fog={
            "title": "Fog & <script>alert(1)</script> \x07ball",
            "slug": "fog",
            "summary": "It is\x00 thick.",
            "body": "See [the ferry](../ferry) ![](/uploads/cover.png)\n\n"
            "<script>alert(2)</script>\n\n\x0btab ]]>",
            "publishedOn": "2024-03-02",
            "note": "private words",
            "author": "ann",
            "source": "plan",
            "cover": "cover.png",
        },
        ferry={"title": "Ferry", "slug": "red ferry/“7”", "publishedOn": "2024-03-01", "author": "ann"},
        plain={"title": "Without a slug"},
    ),
    "content/articles/fog.fr.json": '{"title": "Brume", "slug": "brume"}',
    "content/articles/fog.draft.json": '{"title": "Draft words", "slug": "draft-words"}',
    "content/articles/new.draft.json": '{"title": "New draft words", "slug": "new-draft-words"}',
    **documents("authors", ann={"name": "Ann O'Hara"}),
    **documents("memos", plan={"title": "hidden words", "slug": "hidden-words"}),
    "content/pages/about/us.yaml": """\
heading: About us
text:
- type: heading
  level: 2
  children: [{type: text, text: "Who & what"}]
- type: list
  format: ordered
  children:
  - type: list-item
    children:
    - {type: text, text: one, bold: true}
    - {type: link, url: /fog, children: [{type: text, text: two}]}
""",
    "content/uploads/cover.png": picture(),
}
# Words that the public must not see.
SECRETS = ("private words", "Draft words", "draft-words", "hidden words", "hidden-words")
