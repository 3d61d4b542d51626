"""A site in a git repository with the branch `next`, which is not checked out."""

from collections.abc import Mapping
from pathlib import Path

from tests.git import commit_all, git
from tests.sites import Api, opened, write


def site_with_branch(root: Path, files: Mapping[str, str | bytes]) -> Api:
    write(root, files)
    commit_all(root)
    git(root, "branch", "next")
    return Api.of(opened(root))
