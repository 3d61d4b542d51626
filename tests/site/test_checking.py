"""Problems that a change causes in other files: an incremental check must find the same as a full check."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from server.problems import Problem
from server.site.background.checking import compare_problems
from server.site.change import compare_problem_lists
from server.site.site import Site
from tests.sites import STRING, collection, component, documents, load, relation, write

FILES: dict[str, str | bytes] = {
    **component("shared.card", {"author": relation("oneToOne", "author"), "cover": {"type": "media"}}),
    **collection("author", {"name": STRING}, drafts=True),
    **collection(
        "article",
        {
            "title": STRING,
            "author": relation("manyToOne", "author"),
            "cards": {"type": "component", "component": "shared.card", "repeatable": True},
        },
        drafts=True,
        localized=True,
    ),
    **documents("authors", ann={"name": "Ann"}, bea={"name": "Bea"}),
    **documents(
        "articles",
        a={"title": "A", "author": "ann", "cards": [{"author": "bea"}, {"cover": "a.txt"}]},
        b={"title": "B", "author": "cid"},
        c={"title": "C"},
    ),
    "content/articles/b.fr.json": '{"title": "B", "author": "ann"}',
    "content/uploads/a.txt": "a",
    "site.yaml": "locales: {default: en, available: [en, fr]}\n",
}
ARTICLE = str(FILES["content-types/article.json"])

# Each element is one change to files, applied one after the other. None deletes a file.
CHANGES: Mapping[str, Mapping[str, str | None]] = {
    "a text": {"content/articles/c.json": '{"title": "Other"}'},
    "a relation to nothing": {"content/articles/c.json": '{"title": "Other", "author": "nobody"}'},
    "a line above it": {"content/articles/c.json": '{\n"title": "Other", "author": "nobody"}'},
    "the document that it points to": {"content/authors/nobody.json": '{"name": "N"}'},
    "one that others point to": {"content/authors/ann.json": None},
    "one that a component points to": {"content/authors/bea.json": None},
    "media": {"content/uploads/a.txt": None},
    "both again": {"content/uploads/a.txt": "a", "content/authors/bea.json": '{"name": "Bea"}'},
    "another file": {"content/authors/bea.yaml": "name: Bea\n"},
    "one alone": {"content/authors/bea.json": None},
    "a draft": {"content/authors/ann.draft.json": '{"name": "Ann"}'},
    "a broken file": {"content/articles/c.json": "["},
    "a type": {
        "content-types/article.json": str(FILES["content-types/article.json"]).replace(
            "author.author", "article.article"
        )
    },
}


def problems_between(site: Site) -> list[Problem]:
    return [problem for problem in site.problems if problem.rule in ("dangling", "duplicate-id")]


def shown(problems: tuple[Problem, ...]) -> list[str]:
    return sorted(str(problem) for problem in problems)


@pytest.mark.parametrize("small", [2_000, 0], ids=["in this process", "in its own"])
def test_it_says_what_a_whole_check_would(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small: int
) -> None:
    monkeypatch.setattr("server.site.background.checking.MAX_LOCAL_VERSIONS", small)
    site = load(tmp_path, FILES)
    told = 0
    for change, files in CHANGES.items():
        before, known = site.state.snapshot, problems_between(site)
        write(tmp_path, {path: text for path, text in files.items() if text is not None})
        for path in [path for path, text in files.items() if text is None]:
            (tmp_path / path).unlink()
        site.refresh()
        new, gone = compare_problems(tmp_path, before, site.state.snapshot)
        wanted, ended = compare_problem_lists(known, problems_between(site))
        assert shown(new) == shown(wanted), change
        assert [(p.path, p.message) for p in sorted(gone)] == [(p.path, p.message) for p in sorted(ended)], (
            change
        )
        told += len(new) + len(gone)
    assert told > 10


def test_in_a_large_site_only_what_changed_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("server.site.background.checking.MAX_COMPARED_VERSIONS", 3)
    site = load(tmp_path, FILES)
    before = site.state.snapshot
    (tmp_path / "content/authors/ann.json").unlink()
    write(tmp_path, {"content/articles/c.json": '{"title": "Other", "author": "nobody"}'})
    site.refresh()
    new, _ = compare_problems(tmp_path, before, site.state.snapshot)
    assert [problem.path for problem in new] == ["content/articles/c.json"]
