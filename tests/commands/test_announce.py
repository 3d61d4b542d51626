"""Tests of document counts: the terminal, the studio and the start page show the same numbers with the same
terms.
"""

import shutil
from pathlib import Path

import pytest

from server.commands.announce import Terminal
from tests.conftest import MakeApi
from tests.sites import STRING, Api, collection, documents, load, translated

ONE = {
    **collection("note", {"title": translated(STRING)}, drafts=True, localized=True),
    **documents("notes", a={"title": "A"}, b={"title": "B"}),
}
FRENCH = {"content/notes/c.fr.json": '{"title": "C"}', "content/notes/a.fr.json": '{"title": "A"}'}
DRAFT = {"content/notes/d.draft.json": '{"title": "D"}', "content/notes/a.draft.json": '{"title": "Other"}'}
LOCALES = {"site.yaml": "locales: {available: [en, fr]}\n"}
IN_ENGLISH = "2 published in English (en)<"
ROOT = Path(__file__).parents[2]


def told(api: Api, capsys: pytest.CaptureFixture[str]) -> str:
    """Return the line in the terminal's output that contains the numbers."""
    Terminal().print_ready(api.site.state, [], 0.1, "http://localhost/")
    return capsys.readouterr().out.splitlines()[1].strip()


@pytest.mark.parametrize(
    ("files", "terminal", "listed", "start_page"),
    [
        (ONE, "2 notes", 2, "2 published<"),
        (ONE | DRAFT, "3 notes (with drafts)", 3, "2 published<"),
        (ONE | LOCALES | FRENCH, "3 notes (all locales)", 2, IN_ENGLISH),
        (
            ONE | LOCALES | FRENCH | DRAFT,
            "4 notes (all locales, with drafts)",
            3,
            "2 published in English (en)<",
        ),
    ],
    ids=["plain", "drafts", "locales", "both"],
)
def test_each_number_says_what_it_counts(
    files: dict[str, str],
    terminal: str,
    listed: int,
    start_page: str,
    make_api: MakeApi,
    capsys: pytest.CaptureFixture[str],
) -> None:
    api = make_api(files)
    assert told(api, capsys) == terminal
    studio = api.get("/api/notes?status=draft&pagination[pageSize]=1")
    assert studio.body["meta"]["pagination"]["total"] == listed
    assert start_page in api.get("/", headers={"Accept": "text/html"}).text


def test_the_pages_have_the_numbers_of_this_site(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("content", "content-types"):
        shutil.copytree(ROOT / name, tmp_path / name)
    shutil.copy(ROOT / "site.yaml", tmp_path)
    api = Api.of(load(tmp_path, {}))
    assert f"\n  {told(api, capsys)}\n" in (ROOT / "docs/files.md").read_text()
    total = api.get("/api/articles?status=draft").body["meta"]["pagination"]["total"]
    page = " ".join((ROOT / "docs/studio.md").read_text().split())
    assert f"`{total} documents in English (en)`" in page
    api.accounts.close()
