"""Where the pages of a tree are: below which base of its generator, in which folder, in which locale's.

Bases are known by name, `src/content` (Astro), `content` (Hugo), from where the generator's settings
are; a tree without such settings is looked at from its top.
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
config.yml _config.yml"""
_CONFIGS = tuple(_SETTINGS.split())
_DEFAULT = re.compile(r"""(?:defaultLocale|defaultContentLanguage|^lang)['"]?\s*[:=]\s*['"]?([\w-]+)""", re.M)
SECTIONS = "_index"


@dataclass(frozen=True)
class Place:
    """The place of a page: `folder` is what its group is named after, "" right in the base.

    `{locale}` in it stands for a folder for each locale; SECTIONS are Hugo's lists of sections.
    """

    base: str
    folder: str

    @property
    def start(self) -> str:
        """What paths in the base begin with."""
        return f"{self.base}/" if self.base else ""


@dataclass(frozen=True)
class Places:
    """The places of some pages of the tree at `root`."""

    root: Path
    paths: tuple[str, ...]

    @cached_property
    def projects(self) -> frozenset[str]:
        """The folders that have a generator's settings, and the top."""
        folders = {path[:i] for path in self.paths for i, c in enumerate(path) if c == "/"}
        return frozenset({"", *(f for f in folders if any((self.root / f / c).is_file() for c in _CONFIGS))})

    @cached_property
    def default_locale(self) -> str | None:
        """The locale of files that name none, as a generator's settings say it."""
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
    def _spoken(self) -> frozenset[str]:
        """The bases in which every folder is a locale's."""
        tops: dict[str, set[str]] = defaultdict(set)
        for path in self.paths:
            base = self.base(path)
            top, slash, _ = path[len(base) + 1 if base else 0 :].partition("/")
            if slash:
                tops[base].add(top)
        return frozenset(base for base, names in tops.items() if speak_locales(names))

    def base(self, path: str) -> str:
        """The base that a path is below; "" where it is the top."""
        parts = path.split("/")
        project = next(
            p for n in range(len(parts) - 1, -1, -1) if (p := "/".join(parts[:n])) in self.projects
        )
        start = f"{project}/" if project else ""
        for base in _BASES:
            if path.startswith(f"{start}{base}/"):
                return start + base
        nested = re.match(r"(?:.*?/)?src/content(?=/)", path) or re.match(r".+?(?=/_(?!index\.)[^/]*/)", path)
        return nested[0] if nested else project

    def of(self, path: str) -> Place:
        """The place of one page."""
        base = self.base(path)
        folder, slash, rest = path[len(base) + 1 if base else 0 :].partition("/")
        hugo = is_hugo(base)
        if not slash:
            return Place(base, "")
        if hugo and path.rpartition("/")[2].startswith("_index."):
            return Place(base, SECTIONS)
        if base in self._spoken:
            # Below a folder for each locale: content/en/posts/a.md, or all of it, content/en/a.md.
            inner, slash, _ = rest.partition("/")
            return Place(base, f"{{locale}}/{inner}" if hugo and slash else "{locale}")
        return Place(base, folder)

    def speaks(self, base: str) -> bool:
        """Whether every folder in a base is a locale's."""
        return base in self._spoken


def is_hugo(base: str) -> bool:
    """Whether a base is Hugo's, which has sections in it."""
    return base.rpartition("/")[2] == "content" and not base.endswith("src/content")


def speak_locales(folders: Iterable[str]) -> bool:
    """Whether the names of folders are locales: several, or English alone (`it` may be a subject)."""
    names = set(folders)
    return bool(names) and all(map(is_locale, names)) and (len(names) > 1 or names == {"en"})


def is_locale(name: str) -> bool:
    """Whether a name is the code of a locale: fr, pt-BR, zh-cn."""
    return bool(LOCALE.fullmatch(name)) and is_language(name)


def by_place(places: Places) -> Mapping[Place, list[str]]:
    """The paths at each place."""
    found: dict[Place, list[str]] = defaultdict(list)
    for path in places.paths:
        found[places.of(path)].append(path)
    return found
