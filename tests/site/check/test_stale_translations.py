"""The rule `stale-translation`: documents in the default locale that changed after their translation."""

from pathlib import Path

from tests.git import commit_all, git
from tests.site.check.sites import SETTINGS, TYPES, check, page, places
from tests.sites import write

ON = "stale-translation: warning"
FILES = {
    f"content/pages/{name}.md": page(name) for name in ("a", "a.fr", "b", "b.fr", "c.fr", "d", "d.draft")
}


def commit(root: Path, day: int, *arguments: str) -> None:
    git(root, *(arguments or ("add", "-A")))
    git(root, "commit", "-qm", f"day {day}", at=f"2024-02-{day:02d}T00:00:00Z")


def stale(root: Path) -> list[str]:
    return [path for path, *_ in places(check(root, {}, ON), "stale-translation")]


def test_the_last_change_in_git_counts(tmp_path: Path) -> None:
    write(tmp_path, {**TYPES, **FILES, "site.yaml": SETTINGS})
    assert stale(tmp_path) == []  # This is not a repository yet.
    commit_all(tmp_path)
    assert stale(tmp_path) == []
    write(tmp_path, {"content/pages/a.md": page("new")})
    commit(tmp_path, 1)
    (problem,) = (one for one in check(tmp_path, {}, ON) if one.rule == "stale-translation")
    assert str(problem) == (
        "content/pages/a.fr.md: this translation (last changed on 2024-01-01) is older than the document "
        "in the default locale, content/pages/a.md (changed on 2024-02-01). Update the translation."
    )
    write(tmp_path, {"content/pages/b.md": page("not committed")})
    assert stale(tmp_path) == ["pages/a.fr.md", "pages/b.fr.md"]
    write(tmp_path, {"content/pages/b.fr.md": page("not committed either")})
    assert stale(tmp_path) == ["pages/a.fr.md"]
    write(tmp_path, {"content/pages/a.fr.md": page("neuf")})
    commit(tmp_path, 2)
    assert stale(tmp_path) == []


def test_renames_and_reformatting_do_not_count(tmp_path: Path) -> None:
    write(tmp_path, {**TYPES, **FILES, "site.yaml": SETTINGS})
    commit_all(tmp_path)
    commit(tmp_path, 1, "mv", "content/pages/a.md", "content/pages/z.md")
    commit(tmp_path, 2, "mv", "content/pages/a.fr.md", "content/pages/z.fr.md")
    commit(tmp_path, 3, "mv", "content/pages/z.md", "content/pages/y.md")
    commit(tmp_path, 4, "mv", "content/pages/z.fr.md", "content/pages/y.fr.md")
    assert stale(tmp_path) == []
    write(tmp_path, {"content/pages/y.md": page("a  ")})
    commit(tmp_path, 5)
    assert stale(tmp_path) == ["pages/y.fr.md"]
    head = git(tmp_path, "rev-parse", "HEAD")
    write(tmp_path, {".git-blame-ignore-revs": f"# whitespace\n{head}"})
    assert stale(tmp_path) == []


def test_a_site_in_a_folder_of_a_repository(tmp_path: Path) -> None:
    site = tmp_path / "site"
    write(site, {**TYPES, **FILES, "site.yaml": SETTINGS})
    commit_all(tmp_path)
    write(site, {"content/pages/a.md": page("new")})
    commit(tmp_path, 1)
    assert stale(site) == ["pages/a.fr.md"]
    write(tmp_path, {".git-blame-ignore-revs": git(tmp_path, "rev-parse", "HEAD")})
    assert stale(site) == []
