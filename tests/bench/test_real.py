"""Tests of `make real` on small trees: what it compares and writes, and that it finds a difference."""

from dataclasses import replace
from pathlib import Path

import pytest

from bench.real.differences import Differences
from bench.real.expected import Unreadable, expected, moment
from bench.real.layout import ContentType, Document, claimed, documents
from bench.real.reader import Reading, install_reader
from bench.real.report import print_report
from bench.real.run import Outcome, run
from bench.real.trees import TREES, Tree, commit, find
from bench.real.writes import diff
from tests.git import commit_all
from tests.sites import collection, component, relation, schema, translated, write

SMALL = Tree("small", "https://example.org/small", None, "MIT", ".", "Hugo")


def content_type(name: str, attributes: dict[str, str], **options: object) -> ContentType:
    """Return a content type with drafts and locales."""
    described = {key: {"type": kind} for key, kind in attributes.items()}
    return ContentType(name, f"{name}s", False, True, True, options, described)


def reading(path: str = "content/posts/one.md", body: str = "", **text: str) -> Reading:
    """Return the parsed content of a file in which all values are strings."""
    return Reading(path, "yaml", dict(text), dict(text), body)


@pytest.mark.parametrize(
    ("text", "utc"),
    [
        ("2024-01-02", "2024-01-02T00:00:00.000Z"),
        ("2024-01-02 03:04:05 -0500", "2024-01-02T08:04:05.000Z"),
        ("2024-01-02T03:04:05.6+02:00", "2024-01-02T01:04:05.600Z"),
        ("2024-1-2 3:04", "2024-01-02T03:04:00.000Z"),
    ],
)
def test_a_time_without_a_zone_is_utc(text: str, utc: str) -> None:
    assert moment(text) == utc


def test_text_that_is_no_time_is_unreadable() -> None:
    for text in ("tomorrow", "2024-02-30"):
        with pytest.raises(Unreadable):
            moment(text)


def test_values_are_read_by_the_type_of_their_attribute() -> None:
    kinds = {"title": "string", "day": "date", "count": "integer", "data": "json", "body": "richtext"}
    post = content_type("post", kinds)
    typed = {"title": 1.1, "day": "2024-01-02 10:00:00", "count": 7, "data": {"on": True}}
    text = {"title": "1.10", "day": "2024-01-02 10:00:00", "count": "007", "data": {"on": "true"}}
    document = Document(post, "one", "en", False, "one", Reading("one.md", "yaml", typed, text, "\nText.\n"))
    values = {name: expected(document, name, post.attributes[name]) for name in kinds}
    assert values == {
        "title": "1.10",
        "day": "2024-01-02",
        "count": 7,
        "data": {"on": True},
        "body": "Text.",
    }


def test_which_file_is_which_document() -> None:
    post = content_type("post", {"title": "string"}, draftWhen={"draft": True}, files="posts/{name}.md")
    note = content_type("note", {"title": "string"}, files=["{locale}/{name}/index.md", "{locale}/{name}.md"])
    section = content_type("section", {"title": "string"}, files="posts/{name}/_index.md")
    paths = ["posts/a/b.fr.md", "posts/_part.md", "posts/x/_index.md", "fr/c/index.md", "en/d.md", "de/e.md"]
    types, locales = [post, note, section], ["en", "fr"]
    assert claimed(types, locales, paths).keys() == set(paths) - {"posts/_part.md", "de/e.md"}
    found = documents(types, locales, map(reading, paths))
    assert [(one.type.singular, one.document_id, one.locale) for one in found] == [
        ("post", "a--b", "fr"),
        ("section", "x", "en"),
        ("note", "c", "fr"),
        ("note", "d", "en"),
    ]
    project = content_type("project", {"title": "string"}, files="data/{initial}/{name}.yaml")
    found = documents([project], locales, map(reading, ["data/a/Aave.yaml", "data/b/aave.yaml"]))
    assert [one.document_id for one in found] == ["Aave"]
    draft = Reading("posts/one.md", "yaml", {"draft": True}, {"draft": "true"}, "")
    assert [one.is_draft for one in documents(types, locales, [draft, reading("posts/two.md")])] == [
        True,
        False,
    ]


def test_hunks_of_timestamps_alone_are_told_apart(tmp_path: Path) -> None:
    write(tmp_path, {"a.md": "---\ntitle: A\nkind: x\n---\n", "b c.md": "---\ntitle: B\n---\n"})
    commit_all(tmp_path)
    stamp = "updatedAt: 2024-01-01T00:00:00.000Z\n"
    write(
        tmp_path, {"a.md": f"---\ntitle: C\nkind: x\n{stamp}---\n", "b c.md": f"---\ntitle: B\n{stamp}---\n"}
    )
    assert diff(tmp_path) == {"a.md": [["-title: A", "+title: C"]]}
    assert {path: len(hunks) for path, hunks in diff(tmp_path, with_timestamps=True).items()} == {
        "a.md": 2,
        "b c.md": 1,
    }
    commit(tmp_path, "second")
    assert diff(tmp_path, with_timestamps=True) == {}


def test_trees_are_found_as_archives_or_folders(tmp_path: Path) -> None:
    first, second, third, *_ = TREES
    (tmp_path / first.name).mkdir()
    (tmp_path / f"{second.name}.tar.xz").touch()
    assert find(first, tmp_path) == tmp_path / first.name
    assert find(second, tmp_path) == tmp_path / f"{second.name}.tar.xz"
    assert find(third, tmp_path) is None


def test_a_difference_that_is_not_declared_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    told = Differences()
    told.add("values: text, without blanks at the end of a line", "content/one.md: summary")
    assert print_report([Outcome(TREES[2], differences=told)])
    assert "  known: YAML drops blanks" in capsys.readouterr().out
    told.add("values: date, another value", "content/one.md: date")
    assert not print_report([Outcome(TREES[2], differences=told)])
    printed = capsys.readouterr().out.splitlines()
    assert printed[1].split()[:1] == ["digitalgov"]
    assert "digitalgov: values: date, another value: 1" in printed


def test_a_small_tree_is_served_compared_and_written(tmp_path: Path) -> None:
    reader, reason = install_reader()
    if reason is not None:
        pytest.skip(reason)
    posts = {
        f"content/posts/2024/post-{i}.md": f"""---
title: 'Post {i}'  # kept
date: 2024-01-0{i} 10:00:00 +0100
version: 1.{i}0
author: {"ida" if i % 2 else "nell"}
tags: [sea, fog]
extra: {{on: true, n: {i}}}
---

First.

Second.
"""
        for i in range(1, 7)
    }
    draft = "---\ntitle: D\ndate: 2024-01-08\nversion: 2.00\nauthor: ida\ndraft: true\n---\n"
    write(
        tmp_path / "from/small",
        {
            **posts,
            "hugo.toml": "title = 'Small'\n",
            "content/authors/ida.md": "+++\nname = 'Ida'\nborn = 1970-02-03\n+++\n",
            "content/authors/nell.md": "+++\nname = 'Nell'\nborn = 1971-02-03\n+++\nText.\n",
            "content/posts/draft.md": draft,
        },
    )
    outcome = run(SMALL, tmp_path / "from/small", tmp_path, reader, None)
    assert list(outcome.differences.rows()) == []
    assert (outcome.types, outcome.documents, outcome.unchanged, outcome.changed) == (2, 9, 9, 9)
    assert outcome.compared > 50


def test_what_the_other_reader_reads_differently_is_found(tmp_path: Path) -> None:
    reader, reason = install_reader()
    if reason is not None:
        pytest.skip(reason)
    text = '---\ntitle: "One line, \nand another"\n---\n'
    write(tmp_path / "from/small", {f"content/posts/{name}.md": text for name in ("one", "two")})
    outcome = run(SMALL, tmp_path / "from/small", tmp_path, reader, 1)
    assert [(cause, count) for cause, count, _ in outcome.differences.rows()] == [
        ("values: string, without blanks at the end of a line", 2)
    ]
    assert (outcome.documents, outcome.unchanged, outcome.changed) == (2, 1, 1)


def test_a_project_of_content_types_gets_documents_of_its_own(tmp_path: Path) -> None:
    reader, reason = install_reader()
    if reason is not None:
        pytest.skip(reason)
    link = {"text": {"type": "string", "minLength": 30}, "page": relation("oneToOne", "page")}
    attributes = {
        "title": translated({"type": "string"}),
        "body": translated({"type": "richtext"}),
        "links": {"type": "component", "component": "shared.link", "repeatable": True},
        "parts": {"type": "dynamiczone", "components": ["shared.link", "shared.box"]},
        "rich": "blocks",
        "cover": {"type": "media", "required": True},
        "tags": relation("manyToMany", "tag", inversedBy="pages"),
    }
    write(
        tmp_path / "from/small",
        {
            **component("shared.link", link),
            **component("shared.box", {"link": {"type": "component", "component": "shared.link"}}),
            **collection("page", attributes, drafts=True, localized=True),
            **collection("tag", {"name": "string", "pages": relation("manyToMany", "page", mappedBy="tags")}),
            "content-types/home.json": schema("home", {"title": "string"}, single=True, localized=True),
            "requests.json": '["/api/pages?locale={locale}&filters[slug][$eq]={slug}", "/api/home"]',
        },
    )
    outcome = run(replace(SMALL, defines_types=True), tmp_path / "from/small", tmp_path, reader, None)
    assert list(outcome.differences.rows()) == [
        ("requests: refused", 1, outcome.differences.examples["requests: refused"])
    ]
    assert "slug" in outcome.differences.examples["requests: refused"]
    assert (outcome.types, outcome.locales, outcome.documents, outcome.changed) == (
        3,
        2,
        9,
        7,
    )  # two are not changed, because values shared between locales are skipped
