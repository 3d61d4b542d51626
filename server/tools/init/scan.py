"""Reader of Markdown and data files."""

import os
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from server.documents.path_rules import ENDINGS, MARKDOWN
from server.formats import frontmatter
from server.formats.tree import SyntaxProblem, Tree
from server.storage.files import walk
from server.storage.read import parse, read_text
from server.tools.init.data_files import data_documents, generator_data_folder
from server.tools.init.skipped import SkippedFolder, files_in_skipped_folders

# files in the root folder that describe the repository
_NAMES = """authors changelog changes code_of_conduct contributing history license licence maintainers notice
readme release security support todo"""
FOR_READERS = frozenset(_NAMES.split())
DATA_FOLDERS = ("src/content/", "content/")  # folders in which data files are documents


@dataclass(frozen=True)
class MarkdownPage:
    """A Markdown file or data file, with its values."""

    path: str
    tree: Mapping[str, Tree]
    has_body: bool
    toml: bool = False


@dataclass(frozen=True)
class Scan:
    """The pages in a folder, and the other files that were found there.

    `data` maps each unused data folder to its number of files.
    """

    pages: Mapping[str, MarkdownPage]
    unreadable: Mapping[str, str] = field(default_factory=dict)
    others: Mapping[str, MarkdownPage] = field(default_factory=dict)
    skipped: Mapping[str, SkippedFolder] = field(default_factory=dict)
    data: Mapping[str, int] = field(default_factory=dict)


def scan_folder(root: Path, progress: Callable[[int, int], None] = lambda done, total: None) -> Scan:
    """Read the Markdown and data files below `root`."""
    root = root.resolve()  # Resolve links, because files are read by their real paths.
    pages: dict[str, MarkdownPage] = {}
    others: dict[str, MarkdownPage] = {}
    unreadable: dict[str, str] = {}
    files = sorted(walk(root, [""]).files)
    skipped = files_in_skipped_folders(root, files)
    kept = [path for path in files if path not in skipped]
    content = set(_without_resources([path for path in kept if _is_page(path)]))
    if not any(_is_content(root, path) for path in content):
        content |= data_documents(kept)
    paths = [path for path in files if path in content or path.endswith(MARKDOWN)]
    unreadable.update(
        (path, "Org files are not supported; convert it to Markdown") for path in kept if _is_org(path)
    )
    for done, path in enumerate(paths):
        progress(done, len(paths))
        try:
            (pages if path in content else others)[path] = read_page(root, path)
        except SyntaxProblem as problem:
            if path not in content:
                continue
            where = f"line {problem.line}: " if problem.line else ""
            unreadable[path] = f"{where}{problem.message}"
        except OSError as error:
            unreadable[path] = error.strerror or str(error)
    data = Counter(generator_data_folder(path) for path in kept if path not in content)
    del data[""]
    return Scan(pages, unreadable, others, {p: f for p, f in skipped.items() if p.endswith(MARKDOWN)}, data)


def read_page(root: Path, path: str) -> MarkdownPage:
    """Read a page. Raises OSError if the file can't be read, or SyntaxProblem if it is invalid."""
    text = read_text(root, path)[0]
    tree = parse(path, text, None)
    if not path.endswith(MARKDOWN):
        return MarkdownPage(path, tree, False)
    parts = frontmatter.split_front_matter(text)
    return MarkdownPage(path, tree, bool(parts.body.strip()), parts.handler is frontmatter.TOML)


def _is_page(path: str) -> bool:
    folder, name = os.path.split(path)
    if path.endswith(MARKDOWN):
        return bool(folder) or os.path.splitext(name)[0].lower().replace("-", "_") not in FOR_READERS
    return (
        path.endswith(ENDINGS)
        and not _is_directory_data(path)
        and any(path.startswith(root) and "/" in path[len(root) :] for root in DATA_FOLDERS)
    )


def _is_content(root: Path, path: str) -> bool:
    # A README only describes its folder, so it is not a page.
    if "/" in path:
        return os.path.basename(path).lower() != "readme.md"
    try:
        return bool(read_page(root, path).tree)
    except (OSError, SyntaxProblem):
        return True


def _is_org(path: str) -> bool:
    return path.endswith(".org") and "/" in path


def _is_directory_data(path: str) -> bool:
    # Eleventy stores a folder's data in blog/blog.json or blog/blog.11tydata.json.
    folder, name = os.path.split(path)
    return os.path.splitext(name)[0].removesuffix(".11tydata") == os.path.basename(folder)


def _without_resources(paths: list[str]) -> list[str]:
    # A data file next to a Markdown file in `content/` belongs to that file.
    pages = {path.split("/")[1] for path in paths if path.startswith("content/") and path.endswith(MARKDOWN)}
    return [
        path
        for path in paths
        if path.endswith(MARKDOWN) or not path.startswith("content/") or path.split("/")[1] not in pages
    ]
