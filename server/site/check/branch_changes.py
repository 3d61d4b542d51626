"""File changes since a branch was created, including uncommitted ones."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from server.documents.ids import to_nfc
from server.documents.path_rules import MARKDOWN, Layout
from server.errors import GitError, SetupError
from server.formats import frontmatter
from server.formats.tree import SyntaxProblem
from server.index.dangling import MEDIA, Key
from server.paths import SETTINGS, TYPES, cache_folder
from server.site.check.audit import is_upload
from server.site.check.page import read_prose
from server.storage.git.command import git, git_or_fail
from server.storage.git.refs import find_commit, head_commit
from server.storage.git.repository import git_folder, is_shallow
from server.storage.git.tree import read_blobs
from server.storage.git.uncommitted import changed_paths
from server.storage.media import media_key
from server.storage.read import decode, parse

MAX_CHANGED_FILES = 1000  # with more changes, the whole site is checked


@dataclass(frozen=True, eq=False)
class BranchChanges:
    """The files that have changed since `base`, the commit at which a branch began."""

    root: Path
    base: str
    paths: frozenset[str]

    @property
    def affects_everything(self) -> bool:
        is_configured = any(p == SETTINGS or p.startswith(f"{TYPES}/") for p in self.paths)
        return is_configured or len(self.paths) > MAX_CHANGED_FILES

    @cached_property
    def removed_paths(self) -> frozenset[str]:
        return frozenset(path for path in self.paths if not os.path.lexists(self.root / path))

    @cached_property
    def old_texts(self) -> Mapping[str, str]:
        """The texts that the changed files had in the commit `base`, by path. Media files are left out."""
        paths = sorted(path for path in self.paths if not is_upload(path) and "\n" not in path)
        blobs = read_blobs(self.root, [f"{self.base}:./{path}" for path in paths])
        texts = {}
        for path, data in zip(paths, blobs, strict=True):
            try:
                texts[path] = decode(data or b"")
            except SyntaxProblem:
                continue
        return {path: text for path, text in texts.items() if text}

    def old_keys(self, layout: Layout) -> Iterator[Key]:
        for path in self.paths:
            if is_upload(path):
                yield MEDIA, media_key(path) or ""
        for path, text in self.old_texts.items():
            claim = layout.claim(path)
            if claim:
                yield claim.type.uid, _written_id(path, text) or claim.document_id

    def old_anchors(self) -> Mapping[str, frozenset[str]]:
        texts = {path: text for path, text in self.old_texts.items() if path.endswith(MARKDOWN)}
        return {path: read_prose(_body(text), 1).anchors for path, text in texts.items()}


def _written_id(path: str, text: str) -> str:
    if "documentId" not in text:
        return ""
    try:
        written = parse(path, text, None).get("documentId")
    except SyntaxProblem:
        return ""
    return to_nfc(str(written)) if isinstance(written, str) else ""


def _body(text: str) -> str:
    try:
        return frontmatter.split_front_matter(text).body_text
    except SyntaxProblem:
        return text


def changes_since(root: Path, name: str) -> BranchChanges:
    """Return the changes made since HEAD diverged from the branch or commit `name`.

    Uncommitted changes and untracked files are included. Raises SetupError if git can't compare the files.
    """
    if git_folder(root) is None:
        raise SetupError(
            "--changed", None, "this site is not in a git repository", "run the command without --changed"
        )
    commit, head = find_commit(root, name), head_commit(root)
    if not commit or not head:
        fix = "use the name of a branch, tag or commit, and fetch it first if necessary"
        raise SetupError("--changed", None, f'there is no branch or commit "{name}" in this repository', fix)
    base = (git(root, "merge-base", commit, head) or "").strip()
    if not base:
        fix = "run git fetch --unshallow" if is_shallow(root) else "use a branch with a common history"
        raise SetupError("--changed", None, f'HEAD and "{name}" have no common commit in this clone', fix)
    try:
        options = ("--name-only", "--no-renames", "--relative", "-r", "-z")
        committed = git_or_fail(root, "diff-tree", *options, base, head)
        untracked = git_or_fail(root, "ls-files", "--others", "--exclude-standard", "-z")
        paths = {
            *committed.split("\0"),
            *untracked.split("\0"),
            *changed_paths(root, cache=cache_folder(root)),
        }
    except GitError as error:
        raise SetupError("--changed", None, f"git can't compare the files: {error}") from error
    return BranchChanges(root, base, frozenset(path for path in paths if path and not path.endswith("/")))


def files_that_contain(root: Path, words: list[str], *, untracked: bool = False) -> frozenset[str]:
    if not words:
        return frozenset()
    patterns = [argument for word in words for argument in ("-e", word)]
    options = ("-l", "-z", "-F", "-I", "--no-color", *(("--untracked",) if untracked else ()))
    found = git(root, "grep", *options, *patterns) or ""
    return frozenset(path for path in found.split("\0") if path)
