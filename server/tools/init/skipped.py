"""Folders without content, such as build output."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from server.paths import UPLOADS
from server.storage.git.command import DEFAULT_TIMEOUT_S, git_if_possible
from server.tools.init.folders import TreeFolders

# folders that are skipped if they are next to a site generator's settings
_MADE = """archetypes build content-types coverage dist layouts public resources static target themes vendor
venv"""
_BESIDE_SETTINGS = frozenset(_MADE.split())
_NEVER_CONTENT = frozenset({"_includes", "_layouts", "_sass", "_site", "site-packages"})
_TESTS = frozenset({"__fixtures__", "__tests__", "e2e", "fixtures", "spec", "test", "testdata", "tests"})
_CODE_ENDINGS = (
    ".cjs",
    ".cs",
    ".go",
    ".java",
    ".js",
    ".mjs",
    ".php",
    ".py",
    ".rb",
    ".rs",
    ".swift",
    ".ts",
    ".tsx",
)


@dataclass(frozen=True)
class SkippedFolder:
    """A skipped folder, and the reason for skipping it."""

    path: str
    reason: str


def files_in_skipped_folders(root: Path, files: Iterable[str]) -> Mapping[str, SkippedFolder]:
    """Map each file in a skipped folder to that folder."""
    paths = tuple(files)
    folders = TreeFolders(root, paths)
    ignored = _ignored_folders(root)
    code = {folder for path in paths if path.endswith(_CODE_ENDINGS) for folder in _folders_of(path)}
    found = {}
    decided: dict[str, SkippedFolder | None] = {}
    for path in paths:
        parent = path.rpartition("/")[0]
        if parent not in decided:
            decided[parent] = _find_skipped_folder(path, folders, ignored, code)
        folder = decided[parent]
        if folder is not None:
            found[path] = folder
    return found


def _find_skipped_folder(
    path: str, folders: TreeFolders, ignored_folders: frozenset[str], code_folders: set[str]
) -> SkippedFolder | None:
    parts = path.split("/")[:-1]
    content = folders.content_folder(path)
    outside = len(content.split("/")) if content else len(parts)
    for depth, part in enumerate(parts):
        above, here = "/".join(parts[:depth]), "/".join(parts[: depth + 1])
        if here == UPLOADS:
            return SkippedFolder(here, "uploaded files are not documents")
        if here in ignored_folders:
            return SkippedFolder(here, "ignored by git")
        if part in _NEVER_CONTENT:
            return SkippedFolder(
                here, "folders with this name usually contain templates, packages or build output"
            )
        if depth >= outside:
            continue
        if part in _BESIDE_SETTINGS and above in folders.projects:
            reason = (
                "outside content/, folders with this name usually contain templates, packages or build output"
            )
            return SkippedFolder(here, reason)
        if part in _TESTS and above in code_folders:
            return SkippedFolder(here, "next to code, folders with this name usually contain tests")
    return None


def _folders_of(path: str) -> list[str]:
    return ["", *(path[:i] for i, character in enumerate(path) if character == "/")]


def _ignored_folders(root: Path) -> frozenset[str]:
    # If git ignores the root itself, it does not tell which of the folders inside are ignored.
    options = ("--others", "--ignored", "--exclude-standard", "--directory", "-z")
    printed = git_if_possible(root, "ls-files", *options, seconds=DEFAULT_TIMEOUT_S) or ""
    found = {path.removesuffix("/") for path in printed.split("\0") if path.endswith("/")}
    return frozenset() if "." in found else frozenset(found)
