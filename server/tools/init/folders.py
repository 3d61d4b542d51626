"""Folders that contain pages. Base folders have names that site generators expect, such as `content`."""

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from server.formats.regular_files import read_regular_file
from server.tools.init.data_files import DATA_BASES
from server.tools.init.locale_folders import LocaleParent, find_locale_parents, is_locale

_BASES = ("src/content", "src/data", "content", "src/pages", "pages")
_SETTINGS = """astro.config.mjs astro.config.ts astro.config.js hugo.toml hugo.yaml config.toml config.yaml
config.yml _config.yml docusaurus.config.js docusaurus.config.ts mkdocs.yml mkdocs.yaml zola.toml"""
_ELEVENTY_CONFIGS = (".eleventy.js", "eleventy.config.js", "eleventy.config.mjs", "eleventy.config.cjs")
_CONFIGS = (*_SETTINGS.split(), *_ELEVENTY_CONFIGS)
_DEFAULT = re.compile(
    r"""(?:defaultLocale|defaultContentLanguage|default_language|^lang)['"]?\s*[:=]\s*['"]?([\w-]+)""", re.M
)
SECTIONS = "_index"
_MIN_TERMS = 3  # minimum number of terms for which a taxonomy gets a content type of its own
_DOCUMENTATION = frozenset({"docs", "blog", "i18n"})  # content folders of Docusaurus and MkDocs
# names of folders that are likely to contain more pages later
LISTS = frozenset({"docs", "blog", "posts", "_posts", "articles", "news"})
_DOCUMENTATION_CONFIGS = ("docusaurus.config.js", "docusaurus.config.ts", "mkdocs.yml", "mkdocs.yaml")


@dataclass(frozen=True)
class PageFolder:
    """A folder that contains pages. `folder` is relative to `base`.

    `folder` can contain `{locale}`, which stands for the folder of each locale. The value SECTIONS stands for
    Hugo's section pages.
    """

    base: str
    folder: str

    @property
    def start(self) -> str:
        return f"{self.base}/" if self.base else ""


@dataclass(frozen=True)
class TreeFolders:
    """The folders below `root` that contain pages."""

    root: Path
    paths: tuple[str, ...]
    requested_locales: tuple[str, ...] = ()  # locales from the command line

    @cached_property
    def _folders(self) -> frozenset[str]:
        return frozenset(path[:i] for path in self.paths for i, c in enumerate(path) if c == "/")

    @cached_property
    def projects(self) -> frozenset[str]:
        found = (f for f in self._folders if any((self.root / f / c).is_file() for c in _CONFIGS))
        return frozenset({"", *found})

    @property
    def has_only_locales(self) -> bool:
        parent = self._locale_parents.get("")
        return bool(parent and parent.has_only_locales) and not any(
            (self.root / name).is_file() for name in _CONFIGS
        )

    @cached_property
    def default_locale(self) -> str | None:
        for project in sorted(self.projects):
            for name in _CONFIGS:
                try:
                    text = read_regular_file(self.root / project / name).decode("utf-8", "replace")
                except OSError:
                    continue
                match = _DEFAULT.search(text)
                if match and is_locale(match[1]):
                    return match[1]
        return None

    @cached_property
    def _locale_parents(self) -> Mapping[str, LocaleParent]:
        return find_locale_parents(self.paths, self.requested_locales)

    @cached_property
    def _list_folders(self) -> frozenset[tuple[str, str]]:
        """Folders inside locale folders that contain lists of pages, such as `blog` in `en/blog`.

        Each is a pair: the parent of the locale folders, and the name of the folder inside them.
        """
        names: dict[tuple[str, str], set[str]] = defaultdict(set)
        for path in self.paths:
            parent = self._parent_of(path)
            inner, slash, name = ((parent and parent.path_in_locale(path)) or "").partition("/")
            if parent and slash and inner in LISTS and not name.startswith("_"):
                names[parent.folder, inner].add(name)
        return frozenset(key for key, found in names.items() if len(found) > 2)

    @cached_property
    def _taxonomy_folders(self) -> frozenset[str]:
        terms: dict[str, set[str]] = defaultdict(set)
        others = set()
        for path in self.paths:
            base = self.base_folder(path)
            if not is_hugo(base):
                continue
            parts = path[len(base) + 1 :].split("/")
            depth = 2 if parts[0] in self.locales_in(base) else 1
            top = "/".join([base, *parts[:depth]])
            if parts[-1].startswith("_index.") and len(parts) <= depth + 2:
                terms[top].update(parts[depth:-1])
            else:
                others.add(top)
        return frozenset(
            top for top, names in terms.items() if len(names) >= _MIN_TERMS and top not in others
        )

    def base_folder(self, path: str) -> str:
        """Return the base folder that contains the page at `path`, or "" for the root folder."""
        parent = self._parent_of(path)
        if parent is None:
            found = self._generator_base(path)
            start = f"{found}/" if found else ""
            folder = start + path[len(start) :].partition("/")[0]
            around = self._locale_parents.get(folder)
            # Folders next to locale folders have the same base folder.
            return (
                folder
                if around and path.count("/") > folder.count("/") + 1 and self._mixed(around)
                else found
            )
        # Each locale can have its own project.
        project = self._project(f"{parent.folder}/." if parent.folder else ".")
        found = self._known_base(path, project) or project
        below = parent.folder[len(found) + 1 if found else 0 :] if parent.folder != found else ""
        inside = parent.folder.startswith(f"{found}/" if found else "")
        collections = "/_" in f"/{parent.path_in_locale(path)}".rpartition("/")[0]
        own = below and inside and ("/" in below or collections or self._mixed(parent))
        return parent.folder if own else found

    def _mixed(self, parent: LocaleParent) -> bool:
        return not (parent.has_only_locales or parent.has_default_files)

    def _parent_of(self, path: str) -> LocaleParent | None:
        starts = ("", *(path[:i] for i, character in enumerate(path) if character == "/"))
        found = (self._locale_parents[start] for start in starts if start in self._locale_parents)
        return next((parent for parent in found if parent.path_in_locale(path) is not None), None)

    def _project(self, path: str) -> str:
        parts = path.split("/")
        return next(p for n in range(len(parts) - 1, -1, -1) if (p := "/".join(parts[:n])) in self.projects)

    def _known_base(self, path: str, project: str) -> str | None:
        start = f"{project}/" if project else ""
        for base in (*_BASES, *DATA_BASES):
            if path.startswith(f"{start}{base}/"):
                return start + base
        if path.startswith(f"{start}src/") and any(
            (self.root / project / n).is_file() for n in _ELEVENTY_CONFIGS
        ):
            return f"{start}src"
        return None

    def _generator_base(self, path: str) -> str:
        project = self._project(path)
        known = self._known_base(path, project)
        if known is not None:
            return known
        nested = re.match(r"(?:.*?/)?src/content(?=/)", path) or re.match(r".+?(?=/_(?!index\.)[^/]*/)", path)
        return nested[0] if nested else project

    def content_folder(self, path: str) -> str | None:
        """Return the content folder (such as `content`) that contains a path.

        Return None if the path is not in a content folder.
        """
        base = self._generator_base(path)
        if base not in self.projects:
            return base
        start = f"{base}/" if base else ""
        first, slash, _ = path[len(start) :].partition("/")
        documented = any((self.root / base / name).is_file() for name in _DOCUMENTATION_CONFIGS)
        if slash and (first.startswith("_") or (first in _DOCUMENTATION and documented)):
            return start + first
        return None

    def page_folder(self, path: str) -> PageFolder:
        base = self.base_folder(path)
        folder, slash, _ = path[len(base) + 1 if base else 0 :].partition("/")
        hugo = is_hugo(base)
        if hugo and path.rpartition("/")[2].startswith("_index."):
            terms = path.rpartition("/")[0].rpartition("/")[0]
            localized = "{locale}/" if terms.count("/") - base.count("/") > 1 else ""
            name = terms.rpartition("/")[2] if terms in self._taxonomy_folders else ""
            return PageFolder(base, f"{localized}{name}" if name else SECTIONS)
        if not slash:
            return PageFolder(base, "")
        parent = self._locale_parents.get(base)
        inside = parent.path_in_locale(path) if parent else None
        if parent is None or inside is None:
            return PageFolder(base, folder)
        # such as content/en/posts/a.md or content/en/a.md
        collection = re.match(r"(?:.*?/)?_(?!index\.)[^/]*(?=/)", inside)
        if collection:
            return PageFolder(base, f"{{locale}}/{collection[0]}")
        inner, slash, _ = inside.partition("/")
        if slash and parent.has_default_files and f"{base}/{inner}".lstrip("/") in self._folders:
            return PageFolder(base, inner)
        sections = hugo or f"/{base}".endswith("/data")
        own = slash and (sections or (base, inner) in self._list_folders)
        return PageFolder(base, f"{{locale}}/{inner}" if own else "{locale}")

    def is_generator_base(self, base: str) -> bool:
        # Such names say nothing about the pages.
        return base in self.projects or f"/{base}".endswith(
            tuple(f"/{name}" for name in (*_BASES, *DATA_BASES, "src"))
        )

    def locales_in(self, base: str) -> frozenset[str]:
        parent = self._locale_parents.get(base)
        return parent.locales if parent else frozenset()


def is_hugo(base: str) -> bool:
    return base.rpartition("/")[2] == "content" and not base.endswith("src/content")


def is_vitepress(root: Path) -> bool:
    # In VitePress, every Markdown file is a page.
    return (root / ".vitepress").is_dir()


def by_folder(folders: TreeFolders) -> Mapping[PageFolder, list[str]]:
    found: dict[PageFolder, list[str]] = defaultdict(list)
    for path in folders.paths:
        found[folders.page_folder(path)].append(path)
    return found
