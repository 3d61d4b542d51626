"""Names of files that are created through the API: they must be valid on every system, whatever was sent."""

import re
import unicodedata
from pathlib import PurePosixPath

import pytest

from tests.conftest import MakeApi
from tests.sites import STRING, collection

FILES = {
    **collection("note", {"title": STRING, "slug": {"type": "uid"}}, drafts=True, localized=True),
    **collection("page", {"slug": {"type": "uid"}}, files=["pages/{name}/index.md"]),
    "site.yaml": "locales: {available: [en, fr]}\n",
}
SAFE = re.compile(r"[a-z0-9_][A-Za-z0-9_.~-]*")
NAMES = [
    "$(id)",
    "`id`",
    "a;id",
    "a|id",
    "a&id",
    "-rf",
    "--help",
    "..",
    ".",
    "...",
    "../../x",
    "/etc/x",
    "a/b",
    "a\\b",
    "C:x",
    "con",
    "CON",
    "Aux",
    "nul.md",
    "com1",
    "lpt9.draft",
    "a.",
    "a ",
    " a",
    "a~",
    ".hidden",
    "#a#",
    "a\nb",
    "a\tb",
    "a\u0085b",
    "a\u202eb",
    "~",
    "x" * 300,
    "é" * 200,
    "é",
    "e\u0301",
    "ﬁ",
    "K",
    "ß",
    "\u200b",
    "*",
    "a?",
    "a<b>",
    '"a"',
    "node_modules",
    "__pycache__",
    "a.swp",
    "a.tmp",
    "index.draft",
    "a.fr",
    "%2e%2e",
    "ＣＯＮ",
    "",
]


def created(make_api: MakeApi, slug: str) -> set[str]:
    """Return the files to which documents with a slug are written. A draft's slug may be any value."""
    api = make_api(FILES)
    before = {path for path in api.root.rglob("*") if path.is_file()}
    for path in ("notes?status=draft", "notes?status=draft&locale=fr", "notes", "pages"):
        answer = api.post(f"/api/{path}", {"slug": slug})
        assert answer.status in (201, 400), answer.body
        if answer.status == 201:
            where = path.partition("?")[0]
            found = api.get(f"/api/{where}/{answer.data['documentId']}?{path.partition('?')[2]}")
            assert found.data["slug"] == slug
    after = {path for path in api.root.rglob("*") if path.is_file()} - before
    found = {path.relative_to(api.root).as_posix() for path in after}
    return {path for path in found if not path.startswith(".bifolio/")}


@pytest.mark.parametrize("slug", NAMES)
def test_a_file_has_a_name_on_every_system(make_api: MakeApi, slug: str) -> None:
    made = created(make_api, slug)
    assert made
    for path in made:
        assert path.startswith(("content/notes/", "pages/"))
        for part in PurePosixPath(path).parts:
            assert SAFE.fullmatch(part), path
            assert len(part.encode()) <= 255
            assert part.partition(".")[0].lower() not in ("con", "aux", "nul", "com1", "lpt9"), path
    assert len({unicodedata.normalize("NFKC", path).casefold() for path in made}) == len(made)


def test_names_that_differ_in_case_alone_get_names_that_do_not(make_api: MakeApi) -> None:
    api = make_api(FILES)
    for slug in ("Red", "RED", "red", "rED"):
        assert api.post("/api/pages", {"slug": slug}).status == 201
    names = [path.name for path in (api.root / "pages").iterdir()]
    assert len({name.casefold() for name in names}) == len(names) == 4
    assert {page["slug"] for page in api.get("/api/pages").data} == {"Red", "RED", "red", "rED"}


def test_a_private_uid_is_in_no_file_name(make_api: MakeApi) -> None:
    """Callers who may not read private values can see file names, for example in the history."""
    api = make_api(collection("page", {"title": STRING, "code": {"type": "uid", "private": True}}))
    api.token("reader", may=["page.find", "page.findOne", "history.read"])
    made = api.post("/api/pages", {"title": "New", "code": "a-secret"})
    assert api.files == {f"pages/{made.data['documentId']}.md"}
    assert "a-secret" in api.read(f"content/pages/{made.data['documentId']}.md")
    second = api.post("/api/pages?status=draft", {"title": "Other"})
    assert f"pages/{second.data['documentId']}.md" in api.files
