"""The state of a site's git repository, and what is read again after a git command has failed."""

import logging
from pathlib import Path

import pytest

from server.site.git_state import GitState, read_git_state
from tests.git import commit_all
from tests.git_programs import fake_git
from tests.sites import write


@pytest.mark.parametrize(("failures", "is_logged"), [(1, False), (2, True)])
def test_a_failure_of_git_log_is_only_logged_if_a_retry_fails_as_well(
    failures: int,
    is_logged: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """`git gc` may delete a pack file that `git log` is about to read."""
    caplog.set_level(logging.INFO, "bifolio")
    root, count = tmp_path / "site", tmp_path / "count"
    write(root, {"content/a.md": "A"})
    commit_all(root)
    failing = f"echo >> {count}; [ $(wc -l < {count}) -gt {failures} ] || {{ echo fatal >&2; exit 128; }}"
    fake_git(monkeypatch, tmp_path / "bin", log=failing)
    state = read_git_state(root, GitState())
    assert ("content/a.md" in state.committed.times) is not is_logged
    assert any("commit times" in record.getMessage() for record in caplog.records) is is_logged
