"""Pages → groups that belong to one content type each: by folder, with the pattern that finds them again.

What generators do is known by where files are: `src/content/NAME/` (Astro), `content/NAME/` with
`_index.md` (Hugo), `_posts/` (Jekyll), any folder of Markdown else.
"""

import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from server.init.scan import Page
from server.locales import is_language
from server.settings import FILE, LOCALE

BASES = ("src/content", "src/data", "content", "src/pages", "pages")
NO_CONTENT = frozenset({"_drafts", "_data"})
SECTIONS = "_index"
SINGLES = 5  # so many pages at the top of a tree are a single type each; more are a collection
_CONFIGS = ("astro.config.mjs", "astro.config.ts", "astro.config.js", "hugo.toml", "hugo.yaml", "config.toml",
            "config.yaml", "config.yml", "_config.yml")  # fmt: skip
UNKNOWN = "und"  # the locale of files that name none, where English ones are named
_DEFAULT = re.compile(r"""(?:defaultLocale|defaultContentLanguage|^lang)['"]?\s*[:=]\s*['"]?([\w-]+)""", re.M)


@dataclass(frozen=True)
class Member:
    """One page of a group: its name and locale, as the pattern reads them (None: the default one)."""

    page: Page
    name: str
    locale: str | None = None


@dataclass(frozen=True)
class Group:
    """The pages of one content type: `folder` is what it is named after."""

    folder: str
    patterns: tuple[str, ...]
    members: tuple[Member, ...]
    single: bool = False

    @property
    def locales(self) -> frozenset[str]:
        """The locales that its files name."""
        return frozenset(m.locale for m in self.members if m.locale)


@dataclass(frozen=True)
class Tree:
    """All groups, the locales that files name, the default one first, and the pages that no group has."""

    groups: tuple[Group, ...]
    locales: tuple[str, ...] = ()
    left: Mapping[str, str] = field(default_factory=dict)


def group(root: Path, pages: Mapping[str, Page], default: str | None = None) -> Tree:
    """The groups of a tree's pages; `default` is the locale of files that name none, where it is known."""
    left: dict[str, str] = {}
    by_place: dict[tuple[str, str], list[Page]] = defaultdict(list)
    for path, page in pages.items():
        if _is_draft(path):
            left[path] = "a draft; whatever is taken is served"
        else:
            by_place[_place(path, pages)].append(page)
    groups: list[Group] = []
    for (base, folder), some in sorted(by_place.items()):
        if folder == SECTIONS:
            groups.append(_sections(base, some))
        elif folder:
            groups.append(_collection(root, base, folder, some))
        else:
            taken = [page for page in some if base or page.tree or _alone(root, some)]
            left.update({page.path: "has no front matter" for page in some if page not in taken})
            groups.extend(_top(root, base, taken))
    found = {locale for each in groups for locale in each.locales}
    default = default or default_locale(root, found, groups)
    ordered = (default, *sorted(found - {default})) if found else ()
    return Tree(tuple(g for g in groups if g.members), ordered, left)


def _is_draft(path: str) -> bool:
    return any(part in NO_CONTENT for part in path.split("/")[:-1])


def _place(path: str, pages: Iterable[str]) -> tuple[str, str]:
    """The base that a page is below, and the folder in it that its group is named after; "" at the top."""
    base = next((b for b in BASES if path.startswith(f"{b}/")), "")
    inside = path[len(base) + 1 :] if base else path
    folder, slash, rest = inside.partition("/")
    if not slash:
        return base, ""
    if base == "content" and path.rpartition("/")[2].startswith("_index."):
        return base, SECTIONS
    if is_locale(folder) and _are_locales(base, pages):
        # Below a folder for each locale: content/en/posts/a.md, or all of it, content/en/a.md.
        inner, slash, _ = rest.partition("/")
        return base, f"{{locale}}/{inner}" if base == "content" and slash else "{locale}"
    return base, folder


def _sections(base: str, pages: list[Page]) -> Group:
    """Hugo's lists of sections: each `_index.md` is a document that is named after its folder."""
    members, patterns = [], Counter[str]()
    start = f"{base}/"
    localized = _are_locales(base, [page.path for page in pages])
    for page in pages:
        folder, _, file = page.path[len(start) :].rpartition("/")
        locale, name = None, folder
        if localized:
            locale, _, name = folder.partition("/")
        elif is_locale(file.split(".")[1]) and file.count(".") == 2:
            locale = file.split(".")[1]
            file = f"_index.{{locale}}.{file.split('.')[2]}"
        inner = f"{'{locale}/' if localized else ''}{'{name}/' if name else ''}"
        if name:
            members.append(Member(page, name, locale))
            patterns[f"{start}{inner}{file}"] += 1
    return Group("sections", tuple(p for p, _ in patterns.most_common()), tuple(members))


def _are_locales(base: str, pages: Iterable[str]) -> bool:
    """Whether every folder right below a base is a locale's."""
    start = f"{base}/" if base else ""
    tops = {p[len(start) :].split("/")[0] for p in pages if p.startswith(start) and "/" in p[len(start) :]}
    return _speak_locales(tops)


def _speak_locales(folders: Iterable[str]) -> bool:
    """Whether the names of folders are locales: several, or English alone (`it` may be a subject)."""
    names = set(folders)
    return bool(names) and all(map(is_locale, names)) and (len(names) > 1 or names == {"en"})


def is_locale(name: str) -> bool:
    """Whether a name is the code of a locale: fr, pt-BR, zh-cn."""
    return bool(LOCALE.fullmatch(name)) and is_language(name)


def _collection(root: Path, base: str, folder: str, pages: list[Page]) -> Group:
    """The group of one folder, with a folder for each locale in it or without."""
    start = f"{base}/" if base else ""
    if "{locale}" in folder:
        inner = folder.partition("/")[2]
        return _localized(inner or (root.resolve().name if not base else "pages"), start, inner, pages)
    here = f"{start}{folder}/"
    tops = {page.path[len(here) :].partition("/")[0] for page in pages if "/" in page.path[len(here) :]}
    locales = {name for name in tops if is_locale(name)}
    rest = [p for p in pages if p.path[len(here) :].partition("/")[0] not in locales]
    if not locales or not (_translate(here, locales, pages) if rest else _speak_locales(locales)):
        return _plain(folder, here, pages)
    found = _localized(folder, here, "", [p for p in pages if p not in rest])
    default = _plain(folder, here, rest)
    patterns = (*found.patterns, *default.patterns)
    return replace(found, patterns=patterns, members=(*found.members, *default.members))


def _translate(here: str, locales: Iterable[str], pages: list[Page]) -> bool:
    """Whether folders that look like locales have pages of the same names as the folder around them."""
    inside = {p.path[len(here) :] for p in pages}
    return any(f"{locale}/{name}" in inside for locale in locales for name in inside)


def _localized(folder: str, start: str, inner: str, pages: list[Page]) -> Group:
    """A group with a folder for each locale: START{locale}/INNER/{name}."""
    members, patterns = [], Counter[str]()
    below = f"{inner}/" if inner else ""
    for page in pages:
        locale, _, rest = page.path[len(start) :].partition("/")
        stem, ending = os.path.splitext(rest.removeprefix(below))
        if stem.endswith("/index") and inner:
            members.append(Member(page, stem.removesuffix("/index"), locale))
            patterns[f"{start}{{locale}}/{below}{{name}}/index{ending}"] += 1
        else:
            members.append(Member(page, stem, locale))
            patterns[f"{start}{{locale}}/{below}{{name}}{ending}"] += 1
    return Group(folder, tuple(p for p, _ in patterns.most_common()), tuple(members))


def _plain(folder: str, here: str, pages: list[Page]) -> Group:
    """A group whose locales, if it has any, are part of the files' names: a.md, a.fr.md, a/index.fr.md."""
    stems = {os.path.splitext(page.path)[0] for page in pages}
    bundles = {
        os.path.dirname(stem)
        for stem in stems
        if os.path.basename(stem) == "index" and stem != f"{here}index"
    }
    spoken = {lang for stem in stems for lang in [_suffix(stem, stems)] if lang}
    members, patterns = [], Counter[str]()
    for page in pages:
        stem, ending = os.path.splitext(page.path)
        suffix = stem.rpartition(".")[2]
        locale = suffix if suffix in spoken else None
        bare = stem.removesuffix(f".{locale}") if locale else stem
        if os.path.dirname(bare) in bundles and os.path.basename(bare) == "index":
            members.append(Member(page, os.path.dirname(bare)[len(here) :], locale))
            patterns[f"{here}{{name}}/index{'.{locale}' if locale else ''}{ending}"] += 1
        else:
            members.append(Member(page, bare[len(here) :], locale))
            patterns[f"{here}{{name}}{ending}"] += 1
    return Group(folder, tuple(p for p, _ in patterns.most_common()), tuple(members))


def _suffix(stem: str, stems: Iterable[str]) -> str | None:
    """The locale at the end of a file's name, where there is the same file without it."""
    base, dot, last = stem.rpartition(".")
    return last if dot and is_locale(last) and base in stems else None


def _top(root: Path, base: str, pages: list[Page]) -> list[Group]:
    """The pages right in a base: few are single types, many, or all that there is, are a collection."""
    plain = _plain(os.path.basename(base) or "pages", f"{base}/" if base else "", pages)
    if len(pages) > SINGLES or (not base and _alone(root, pages)):
        return [plain]
    names = sorted({member.name for member in plain.members})
    return [_single(name, [m for m in plain.members if m.name == name]) for name in names]


def _alone(root: Path, pages: list[Page]) -> bool:
    """Whether a folder has nothing but these pages."""
    found = {entry.name for entry in root.iterdir() if not entry.name.startswith(".")}
    return found <= {page.path for page in pages} | {FILE, "content-types", "README.md"}


def _single(name: str, members: list[Member]) -> Group:
    patterns = []
    for member in members:
        stem, ending = os.path.splitext(member.page.path)
        bare = stem.removesuffix(f".{member.locale}")
        patterns.append(f"{bare}.{{locale}}{ending}" if member.locale else f"{stem}{ending}")
    return Group(name, tuple(dict.fromkeys(patterns)), tuple(members), single=True)


def default_locale(root: Path, found: Iterable[str], groups: Iterable[Group]) -> str:
    """The locale of files that name none: what the generator's settings say, English, or the commonest."""
    for name in _CONFIGS:
        try:
            told = _DEFAULT.search((root / name).read_text(encoding="utf-8", errors="replace"))
        except OSError:
            continue
        if told and is_locale(told[1]):
            return told[1]
    counts = Counter(member.locale for each in groups for member in each.members)
    if counts[None]:
        return UNKNOWN if counts["en"] else "en"
    return "en" if counts["en"] or not counts else max(sorted(found), key=lambda code: counts[code])
