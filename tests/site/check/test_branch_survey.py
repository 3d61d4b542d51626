"""`bifolio check --changed`: it finds what a full check finds, except problems that were there before."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner

from server.commands.cli import main
from server.site.check.branch_changes import changes_since
from server.site.check.branch_survey import survey_changes
from server.site.check.survey import survey_site
from tests.git import commit_all, git
from tests.site.check.sites import SETTINGS, TYPES, page
from tests.sites import STRING, collection, component, opened, relation, translated, write

SITE: dict[str, str | bytes] = {
    **TYPES,
    **collection(
        "note",
        {
            "text": {"type": "richtext"},
            "slug": {"type": "uid"},
            "about": relation("manyToMany", "page"),
            "cover": {"type": "media"},
            "part": {"type": "component", "component": "shared.coded"},
        },
    ),
    **component("shared.coded", {"code": {**STRING, "unique": True}}),
    **collection("guide", {"text": translated({"type": "richtext"})}, localized=True),
    **collection(
        "tag", {"name": STRING, "slug": STRING, "aliases": {"type": "array"}, "text": {"type": "richtext"}}
    ),
    "site.yaml": SETTINGS
    + "check: {rules: {missing-alt: warning}}\nurls: {tag: 'https://example.org/tags/{slug}', "
    "guide: 'https://example.org/{locale}/{name}/'}\n",
    "content/guides/one/index.yaml": "text: One\n",
    "content/guides/one/index.fr.yaml": "text: Un\n",
    "content/guides/two.yaml": "text: '[x](/en/one/) [y](/fr/one/) [z](/fr/two/)'\n",
    "content/tags/3.yaml": "text: '[x](/fr/two/)'\n",
    "content/tags/1.md": "---\nslug: Brücke\naliases: [/tags/bridges]\n---\n\n# Arch\n",
    "content/tags/2.yaml": "text: '[x](/tags/Br%C3%BCcke#arch) [y](/tags/bridges/)'\n",
    "content/pages/a.md": page("# First\n\n## Second\n\n[b](b.md#b) [map](/uploads/sea%20map.txt)"),
    "content/pages/a.fr.md": page("# Un"),
    "content/pages/b.md": page("# B", "documentId: bee"),
    "content/pages/c.md": page("[a](a.md#second) [b](./b.md)"),
    "content/notes/n.yaml": "text: '[b](../pages/b.md)'\nslug: n\nabout: [a, bee]\ncover: other.txt\n",
    "content/notes/m.yaml": "slug: m\npart: {code: x}\n",
    "content/uploads/sea map.txt": "map",
    "content/uploads/other.txt": "other",
    "content/uploads/seen.png": "picture",
    "content/uploads/seen.png.yaml": "alternativeText: A picture\n",
    "content/notes/seen.yaml": "cover: seen.png\n",
}
# Files that a branch changes. A file whose text is None is deleted.
CHANGES: dict[str, Mapping[str, str | None]] = {
    "nothing": {},
    "a sound document": {"content/pages/d.md": page("[a](a.md)")},
    "a broken link": {"content/pages/d.md": page("[a](e.md)")},
    "a file that can't be parsed": {"content/pages/a.md": "---\ntitle: A: B\n---\n"},
    "a missing target": {"content/notes/m.yaml": "slug: m\nabout: [zed]\ncover: zed.txt\n"},
    "a deleted document": {"content/pages/b.md": None},
    "a renamed document": {"content/pages/b.md": None, "content/pages/z.md": page("# B", "documentId: bee")},
    "another id": {"content/pages/b.md": page("# B", "documentId: cee")},
    "a heading": {"content/pages/a.md": page("# First\n\n## Third")},
    "a heading that stays": {"content/pages/a.md": page("# New\n\n## Second")},
    "media that a link needs": {"content/uploads/sea map.txt": None},
    "media that an attribute needs": {"content/uploads/other.txt": None},
    "a deleted page": {"content/tags/1.md": None},
    "another address": {"content/tags/1.md": "---\nslug: arch\naliases: [/tags/bridges]\n---\n\n# Arch\n"},
    "a deleted page in all locales": {
        "content/guides/one/index.yaml": None,
        "content/guides/one/index.fr.yaml": None,
    },
    "a deleted page that another locale showed": {"content/guides/two.yaml": None},
    "no alias": {"content/tags/1.md": "---\nslug: Brücke\n---\n\n# Arch\n"},
    "a heading of a page": {
        "content/tags/1.md": "---\nslug: Brücke\naliases: [/tags/bridges]\n---\n\n# Span\n"
    },
    "an image without a text": {"content/uploads/seen.png.yaml": None},
    "a value twice": {"content/notes/k.yaml": "slug: n\n"},
    "a value of a component twice": {"content/notes/k.yaml": "part: {code: x}\n"},
    "no default locale": {
        "content/pages/a.md": None,
        "content/pages/c.md": page(""),
        "content/notes/n.yaml": "slug: n\n",
    },
    "a draft without the id": {"content/pages/b.draft.md": page("# B")},
    "a document twice": {"content/pages/c.yaml": "title: C\n"},
    "a file of no type": {"content/pagse/c.yaml": "title: C\n"},
    "an unknown key": {"content/pages/c.fr.md": page("", "colour: red")},
    "settings": {"site.yaml": "locales: {default: en, available: [en]}\n"},
    "a type": {"content-types/note.json": str(SITE["content-types/note.json"]).replace('"slug"', '"slugs"')},
}


def change(root: Path, files: Mapping[str, str | None]) -> None:
    write(root, {path: text for path, text in files.items() if text is not None})
    for path in (path for path, text in files.items() if text is None):
        (root / path).unlink()


@pytest.mark.parametrize("is_committed", [True, False], ids=["committed", "not committed"])
@pytest.mark.parametrize("name", CHANGES)
def test_it_finds_what_a_full_check_finds(tmp_path: Path, name: str, is_committed: bool) -> None:
    root = tmp_path / "site"
    write(root, SITE)
    commit_all(tmp_path)
    assert survey_site(opened(root)).problems == ()
    git(tmp_path, "checkout", "-q", "-b", "topic")
    change(root, CHANGES[name])
    if is_committed:
        git(tmp_path, "add", "-A")
        git(tmp_path, "commit", "-q", "--allow-empty", "-m", "change")
    site = opened(root)
    everything = survey_site(site).problems
    assert survey_changes(site, changes_since(site.root, "main")).problems == everything
    assert bool(everything) == (name not in ("nothing", "a sound document", "a heading that stays")), (
        everything
    )


def test_problems_that_were_there_before_are_left_out(tmp_path: Path) -> None:
    old = {
        "content/pages/old.md": page("[x](y.md)", "colour: red"),
        "content/notes/o.yaml": "about: [nobody, bee]\n",
    }
    write(tmp_path, {**SITE, **old})
    commit_all(tmp_path)
    git(tmp_path, "checkout", "-q", "-b", "topic")
    write(tmp_path, {"content/pages/new.md": page("[x](z.md)")})
    site = opened(tmp_path)
    found = survey_changes(site, changes_since(site.root, "main"))
    assert [(p.path, p.rule) for p in found.problems] == [("content/pages/new.md", "broken-link")]
    assert found.file_count == 1
    (tmp_path / "content/pages/b.md").unlink()
    site = opened(tmp_path)
    messages = [str(p) for p in survey_changes(site, changes_since(site.root, "main")).problems]
    assert not [message for message in messages if "nobody" in message or "old.md" in message]
    assert [message for message in messages if "o.yaml" in message and '"bee"' in message]


def test_links_in_invalid_files_to_what_a_branch_removes(tmp_path: Path) -> None:
    invalid = "slug: [o]\ntext: '[b](../pages/b.md)'\nabout: [bee, [a]]\n"
    write(tmp_path, {**SITE, "content/notes/o.yaml": invalid})
    commit_all(tmp_path)
    git(tmp_path, "checkout", "-q", "-b", "topic")
    (tmp_path / "content/pages/b.md").unlink()
    site = opened(tmp_path)
    found = survey_changes(site, changes_since(site.root, "main")).problems
    rules = [problem.rule for problem in found if problem.path == "content/notes/o.yaml"]
    assert sorted(rules) == ["broken-link", "dangling"]


def test_what_came_to_the_other_branch_does_not_count(tmp_path: Path) -> None:
    write(tmp_path, SITE)
    commit_all(tmp_path)
    git(tmp_path, "branch", "topic")
    write(tmp_path, {"content/pages/x.md": page("[x](y.md)")})
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "on main")
    git(tmp_path, "checkout", "-q", "topic")
    site = opened(tmp_path)
    assert changes_since(site.root, "main").paths == frozenset()


def run(root: Path, *options: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(main, ["check", "--site", str(root), *options], catch_exceptions=False)
    return done.exit_code, done.stdout, done.stderr


def test_the_command(tmp_path: Path) -> None:
    write(tmp_path, {**SITE, "content/pages/old.md": page("[x](y.md)")})
    status, _, message = run(tmp_path, "--changed", "main")
    assert (status, "this site is not in a git repository" in message) == (1, True)
    commit_all(tmp_path)
    write(tmp_path, {"content/pages/new.md": page("[x](z.md)", "colour: red")})
    status, printed, _ = run(tmp_path, "--changed", "main", "--format", "json")
    told = json.loads(printed)
    assert (status, told["summary"]) == (0, {"files": 1, "errors": 0, "warnings": 2})
    assert {problem["path"] for problem in told["problems"]} == {"content/pages/new.md"}
    assert run(tmp_path, "--changed", "HEAD", "--strict")[0] == 1
    status, _, message = run(tmp_path, "--changed", "nowhere")
    assert (status, 'there is no branch or commit "nowhere"' in message) == (1, True)
    status, _, message = run(tmp_path, "--changed", "main", "--fix")
    assert (status, "can't be used together" in message) == (2, True)


def test_a_shallow_clone_lacks_the_common_commit(tmp_path: Path) -> None:
    write(tmp_path / "origin", SITE)
    commit_all(tmp_path / "origin")
    git(tmp_path / "origin", "checkout", "-q", "-b", "topic")
    for branch in ("topic", "main"):
        git(tmp_path / "origin", "checkout", "-q", branch)
        git(tmp_path / "origin", "commit", "-q", "--allow-empty", "-m", branch)
    git(tmp_path, "clone", "-q", "--depth=1", "--no-single-branch", (tmp_path / "origin").as_uri(), "clone")
    git(tmp_path / "clone", "checkout", "-q", "topic")
    status, _, message = run(tmp_path / "clone", "--changed", "origin/main")
    assert (status, "git fetch --unshallow" in message) == (1, True)
