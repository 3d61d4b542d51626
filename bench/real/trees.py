"""The public repositories (trees) that are tested, and their preparation."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from bench.archives import unpack_archive
from tests.git import git

ENDINGS = (".tar.gz", ".tar.xz")


@dataclass(frozen=True, slots=True)
class Tree:
    """A public repository at a commit. `subfolder` is the part of the repository that is used."""

    # `defines_types` is whether it already contains content types. An archive contains one folder with the
    # archive's name.

    name: str
    url: str
    commit: str | None  # None if the archive does not contain the commit's id
    licence: str
    subfolder: str
    generator: str
    defines_types: bool = False


TREES = (
    Tree(
        "oss-directory",
        "https://github.com/opensource-observer/oss-directory",
        "c174b9a55f",
        "Apache-2.0",
        "data",
        "plain YAML",
    ),
    Tree(
        "ruby-lang",
        "https://github.com/ruby/www.ruby-lang.org",
        "76ac659357",
        "Ruby",
        ".",
        "Jekyll",
    ),
    Tree(
        "digitalgov",
        "https://github.com/GSA/digitalgov.gov",
        "4979583206",
        "public domain",
        ".",
        "Hugo",
    ),
    Tree(
        "astro-docs",
        "https://github.com/withastro/docs",
        None,
        "MIT",
        "src/content/docs/{en,fr,de}",
        "Astro",
    ),
    Tree(
        "rust-blog",
        "https://github.com/rust-lang/blog.rust-lang.org",
        None,
        "MIT or Apache-2.0",
        "content",
        "Zola",
    ),
    Tree(
        "launchpad",
        "https://github.com/strapi/LaunchPad",
        None,
        "MIT",
        "strapi",
        "Strapi",
        defines_types=True,
    ),
    Tree(
        "foodadvisor",
        "https://github.com/strapi/foodadvisor",
        None,
        "MIT",
        "api",
        "Strapi",
        defines_types=True,
    ),
)


def find(tree: Tree, folder: Path) -> Path | None:
    unpacked = folder / tree.name
    archives = (folder / f"{tree.name}{ending}" for ending in ENDINGS)
    return unpacked if unpacked.is_dir() else next((path for path in archives if path.is_file()), None)


def unpack(source: Path, name: str, folder: Path) -> Path:
    """Copy a tree, commit it to a new repository, and return its folder."""
    root = folder / name
    if source.is_dir():
        shutil.copytree(source, root, ignore=shutil.ignore_patterns(".git", ".bifolio"))
    else:
        unpack_archive(source, folder)
    git(root, "init", "-q", "-b", "main")
    commit(root, "as it is")
    return root


def commit(root: Path, message: str) -> None:
    git(root, "add", "-A")
    git(root, "commit", "-q", "--allow-empty", "-m", message)


def list_files(root: Path) -> list[str]:
    return sorted(path for path in git(root, "ls-files", "-z").split("\0") if path)
