"""The site on which agents solve tasks: a magazine in git, with a problem, a draft and an earlier version."""

from base64 import b64decode
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.git import commit_all, git
from tests.sites import STRING, collection, component, documents, relation, schema, translated, write

GIF = b64decode("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7")
SETTINGS = """
locales: {default: en, available: [en, fr]}
mcp: {enabled: true, write: %s}
roles:
  public: {article: [find, findOne]}
"""
READING = ("article.find", "article.findOne", "author.find", "author.findOne", "tag.find", "home.find")
# The permissions of each token. `assistant` has those that docs/agents.md recommends, for all content types.
TOKENS: Mapping[str, tuple[str, ...]] = {
    "assistant": (
        *READING,
        *("article.create", "article.update", "article.delete", "article.readDraft"),
        *("author.create", "author.update", "tag.findOne", "tag.create", "home.update"),
        *("upload.find", "upload.findOne", "upload.upload", "branch.find", "branch.create", "branch.update"),
        *("source.read", "source.write", "problems.find", "history.read", "history.restore"),
    ),
    "drafter": (
        *READING,
        *("article.updateDraft", "article.readDraft", "branch.find", "branch.create", "branch.update"),
        *("source.read", "history.read"),
    ),
    "reader": (*READING, "branch.find", "source.read", "history.read"),
}
ARTICLE: Mapping[str, Any] = {
    "title": translated({"type": "string", "required": True, "maxLength": 60}),
    "slug": {"type": "uid", "targetField": "title"},
    "body": translated({"type": "richtext"}),
    "rating": "integer",
    "authors": relation("manyToMany", "author"),
    "tags": relation("manyToMany", "tag"),
    "related": relation("manyToMany", "article"),
    "cover": {"type": "media"},
    "sections": {"type": "dynamiczone", "components": ["shared.quote", "shared.note"]},
}
TYPES: Mapping[str, str] = {
    **collection("article", ARTICLE, drafts=True, localized=True),
    **collection("author", {"name": {**STRING, "required": True}}),
    **collection("tag", {"name": STRING}),
    **component("shared.quote", {"text": {"type": "text"}, "by": STRING}),
    **component("shared.note", {"text": {"type": "text"}}),
    "content-types/home.json": schema(
        "home", {"title": "string", "featured": relation("manyToOne", "article")}, single=True
    ),
}
FOG: Mapping[str, Any] = {
    "title": "Fog",
    "slug": "fog",
    "rating": 4,
    "body": "Fog comes in on the tide.\n\n![](/uploads/fog.gif)\n",
    "authors": ["ada", "ben"],
    "tags": ["sea", "sky"],
    "sections": [{"__component": "shared.note", "text": "Bring a coat."}],
}
CONTENT: Mapping[str, str | bytes] = {
    **documents(
        "articles",
        fog=FOG,
        tide={
            "title": "Tide",
            "slug": "tide",
            "body": "It turns.\n\n![](/uploads/tide.gif)\n",
            "authors": ["ada"],
            "related": ["fog"],
        },
        wind={"title": "Wind", "slug": "wind", "body": "It blows.", "tags": ["sky"], "cover": "harbour.gif"},
        rain={"title": "Rain", "slug": "rain", "body": "![](/uploads/wind.gif)\n", "tags": ["sae"]},
    ),
    **{
        path.replace(".json", ".draft.json"): text
        for path, text in documents(
            "articles", wind={"title": "Gale", "slug": "wind", "body": "Gusts."}
        ).items()
    },
    **documents("authors", ada={"name": "Ada"}, ben={"name": "Ben"}),
    **documents("tags", sea={"name": "Sea"}, sky={"name": "Sky"}),
    "content/home.json": '{"title": "Home", "featured": "fog"}',
    **{f"content/uploads/{name}.gif": GIF for name in ("fog", "tide", "wind", "harbour")},
}


def make_magazine(root: Path, mode: str) -> str:
    """Create the site, whose agents write as `mode` says. Return the first commit.

    In the first commit, fog has an earlier text. There is also a branch `spring`.
    """
    earlier = documents("articles", fog={**FOG, "title": "The fog", "body": "Fog is a cloud.\n"})
    settings = {"site.yaml": SETTINGS % mode, ".gitignore": ".bifolio/\n"}
    write(root, {**TYPES, **CONTENT, **earlier, **settings})
    commit_all(root)
    first = git(root, "rev-parse", "HEAD").strip()
    write(root, CONTENT)
    git(root, "commit", "-qam", "Rewrite fog", at="2024-02-01T00:00:00Z")
    git(root, "branch", "spring")
    return first
