"""The folders of a tree's pages: the base of the site generator, the folder in it, folders of locales.

Bases are known by their names, `src/content` (Astro), `content` (Hugo) or `src` (Eleventy), relative to the
settings of the generator. Without such settings, the top of the tree is the base.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from server.config.values import LOCALE
from server.documents.locales import is_language

_BASES = ("src/content", "src/data", "content", "src/pages", "pages")
_SETTINGS = """astro.config.mjs astro.config.ts astro.config.js hugo.toml hugo.yaml config.toml config.yaml
config.yml _config.yml docusaurus.config.js docusaurus.config.ts mkdocs.yml mkdocs.yaml zola.toml"""
_ELEVENTY = (".eleventy.js", "eleventy.config.js", "eleventy.config.mjs", "eleventy.config.cjs")
_CONFIGS = (*_SETTINGS.split(), *_ELEVENTY)
_DEFAULT = re.compile(
    r"""(?:defaultLocale|defaultContentLanguage|default_language|^lang)['"]?\s*[:=]\s*['"]?([\w-]+)""", re.M
)
SECTIONS = "_index"
_DOCUMENTATION = frozenset({"docs", "blog", "i18n"})  # the content of Docusaurus and MkDocs
_DOCUMENTED = ("docusaurus.config.js", "docusaurus.config.ts", "mkdocs.yml", "mkdocs.yaml")


@dataclass(frozen=True)
class PageFolder:
    """The folder of some pages in a base; "" for the base itself. The pages' group is named after it.

    `{locale}` in it stands for one folder for each locale. SECTIONS stands for Hugo's section pages.
    """

    base: str
    folder: str

    @property
    def start(self) -> str:
        """The beginning of all paths in the base."""
        return f"{self.base}/" if self.base else ""


@dataclass(frozen=True)
class TreeFolders:
    """The folders of some pages of the tree at `root`."""

    root: Path
    paths: tuple[str, ...]

    @cached_property
    def projects(self) -> frozenset[str]:
        """The folders with settings of a generator, and the top."""
        folders = {path[:i] for path in self.paths for i, c in enumerate(path) if c == "/"}
        return frozenset({"", *(f for f in folders if any((self.root / f / c).is_file() for c in _CONFIGS))})

    @cached_property
    def default_locale(self) -> str | None:
        """The default locale that the settings of a generator name."""
        for project in sorted(self.projects):
            for name in _CONFIGS:
                try:
                    text = (self.root / project / name).read_text(encoding="utf-8", errors="replace")
                except OSError:
                    continue
                told = _DEFAULT.search(text)
                if told and is_locale(told[1]):
                    return told[1]
        return None

    @cached_property
    def _in_locales(self) -> frozenset[str]:
        """The bases in which every folder is that of a locale."""
        tops: dict[str, set[str]] = defaultdict(set)
        for path in self.paths:
            base = self.base(path)
            top, slash, _ = path[len(base) + 1 if base else 0 :].partition("/")
            if slash:
                tops[base].add(top)
        return frozenset(base for base, names in tops.items() if are_locales(names))

    def base(self, path: str) -> str:
        """The base of a path; "" if it is the top of the tree."""
        parts = path.split("/")
        project = next(
            p for n in range(len(parts) - 1, -1, -1) if (p := "/".join(parts[:n])) in self.projects
        )
        start = f"{project}/" if project else ""
        for base in _BASES:
            if path.startswith(f"{start}{base}/"):
                return start + base
        if path.startswith(f"{start}src/") and any((self.root / project / n).is_file() for n in _ELEVENTY):
            return f"{start}src"
        nested = re.match(r"(?:.*?/)?src/content(?=/)", path) or re.match(r".+?(?=/_(?!index\.)[^/]*/)", path)
        return nested[0] if nested else project

    def content_folder(self, path: str) -> str | None:
        """The generator's content folder around a path, such as `content`; None if there is none."""
        base = self.base(path)
        if base not in self.projects:
            return base
        start = f"{base}/" if base else ""
        first, slash, _ = path[len(start) :].partition("/")
        documented = any((self.root / base / name).is_file() for name in _DOCUMENTED)
        if slash and (first.startswith("_") or (first in _DOCUMENTATION and documented)):
            return start + first
        return None

    def of(self, path: str) -> PageFolder:
        """The folder of one page."""
        base = self.base(path)
        folder, slash, rest = path[len(base) + 1 if base else 0 :].partition("/")
        hugo = is_hugo(base)
        if hugo and path.rpartition("/")[2].startswith("_index."):
            return PageFolder(base, SECTIONS)
        if not slash:
            return PageFolder(base, "")
        if base in self._in_locales:
            # Below a folder for each locale: content/en/posts/a.md, or all of it, content/en/a.md.
            inner, slash, _ = rest.partition("/")
            return PageFolder(base, f"{{locale}}/{inner}" if hugo and slash else "{locale}")
        return PageFolder(base, folder)

    def has_locale_folders(self, base: str) -> bool:
        """Whether every folder in a base is that of a locale."""
        return base in self._in_locales


def is_hugo(base: str) -> bool:
    """Whether a base is that of Hugo, which has sections in it."""
    return base.rpartition("/")[2] == "content" and not base.endswith("src/content")


def is_vitepress(root: Path) -> bool:
    """Whether a folder is the source of VitePress, in which every Markdown file is a page."""
    return (root / ".vitepress").is_dir()


def are_locales(folders: Iterable[str]) -> bool:
    """Whether folders are named after locales: several, or `en` alone (a single `it` may be a subject)."""
    names = set(folders)
    return bool(names) and all(map(is_locale, names)) and (len(names) > 1 or names == {"en"})


def is_locale(name: str) -> bool:
    """Whether a name is the code of a locale: fr, pt-BR, zh-cn."""
    return bool(LOCALE.fullmatch(name)) and is_language(name)


def by_folder(folders: TreeFolders) -> Mapping[PageFolder, list[str]]:
    """The paths by their folder."""
    found: dict[PageFolder, list[str]] = defaultdict(list)
    for path in folders.paths:
        found[folders.of(path)].append(path)
    return found
