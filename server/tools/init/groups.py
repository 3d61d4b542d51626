"""Groups of pages. A content type is proposed for each group."""

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from server.config.model import FILE
from server.documents.path_rules import MARKDOWN, is_partial
from server.tools.init.folders import (
    LISTS,
    SECTIONS,
    PageFolder,
    TreeFolders,
    by_folder,
    is_vitepress,
)
from server.tools.init.locale_folders import are_locales, is_locale
from server.tools.init.scan import MarkdownPage

NO_CONTENT = frozenset({"_drafts", "_data"})
MAX_SINGLES = 5  # More pages than this in a base folder become a collection type.
# locale of files without a locale in their names, if there are English files of the same documents
UNKNOWN_LOCALE = "und"


@dataclass(frozen=True)
class PageMember:
    """A page in a group. `locale` is None if the page is in the default locale."""

    page: MarkdownPage
    name: str
    locale: str | None = None


@dataclass(frozen=True)
class PageGroup:
    """The pages of one proposed content type, which is named after `folder`."""

    folder: str
    patterns: tuple[str, ...]
    members: tuple[PageMember, ...]
    single: bool = False

    @property
    def locales(self) -> frozenset[str]:
        return frozenset(m.locale for m in self.members if m.locale)

    @property
    def localized(self) -> bool:
        return bool(self.locales) or any("{locale}" in pattern for pattern in self.patterns)


@dataclass(frozen=True)
class PageTree:
    """Groups of pages, their locales (the default locale first), and the reason for each omitted page."""

    groups: tuple[PageGroup, ...]
    locales: tuple[str, ...] = ()
    omitted: Mapping[str, str] = field(default_factory=dict)


def group_pages(
    root: Path, pages: Mapping[str, MarkdownPage], requested_locales: tuple[str, ...] = ()
) -> PageTree:
    """Group pages by content type. The first of the `requested_locales` becomes the default locale."""
    omitted = {path: "is a draft, which would become public" for path in pages if is_draft(path)}
    omitted.update({path: "its name starts with _" for path in pages if is_partial(path)})
    omitted.update({path: "describes its folder" for path, page in pages.items() if _describes(page)})
    folders = TreeFolders(root, tuple(path for path in pages if path not in omitted), requested_locales)
    groups: list[PageGroup] = []
    grouped = _with_single_index_pages(by_folder(folders))
    for page_folder, paths in sorted(grouped.items(), key=lambda pair: (pair[0].base, pair[0].folder)):
        in_folder = [pages[path] for path in paths]
        if page_folder.folder == SECTIONS:
            groups.extend(_sections(page_folder, in_folder, folders.locales_in(page_folder.base)))
        elif page_folder.folder:
            groups.append(_collection(folders, page_folder, in_folder))
        else:
            whole = page_folder.base or is_vitepress(root) or _holds_nothing_else(root, in_folder)
            taken = [page for page in in_folder if whole or page.tree]
            omitted.update({page.path: "has no front matter" for page in in_folder if page not in taken})
            groups.extend(_base_folder_groups(root, page_folder, taken))
    found = {locale for each in groups for locale in each.locales}
    default = next(iter(requested_locales), None) or folders.default_locale or _default_locale(found, groups)
    ordered = (default, *sorted(found - {default})) if found else ()
    return PageTree(tuple(g for g in groups if g.members), ordered, omitted)


def _with_single_index_pages(grouped: Mapping[PageFolder, list[str]]) -> Mapping[PageFolder, list[str]]:
    # An index page that is alone in its folder belongs to the parent folder.
    found: dict[PageFolder, list[str]] = {}
    for page_folder, paths in grouped.items():
        moves = "{locale}" not in page_folder.folder and _has_only_index_page(page_folder, paths)
        found.setdefault(replace(page_folder, folder="") if moves else page_folder, []).extend(paths)
    return found


def _has_only_index_page(page_folder: PageFolder, paths: Iterable[str]) -> bool:
    folder = page_folder.folder.removeprefix("{locale}/")
    if not folder or folder in LISTS or folder == SECTIONS:
        return False
    for path in paths:
        inside = path[len(page_folder.start) :]
        if folder != page_folder.folder:
            inside = inside.partition("/")[2]
        stem, _, suffix = os.path.splitext(inside)[0].partition(".")
        if stem != f"{folder}/index" or not (not suffix or is_locale(suffix)):
            return False
    return True


def is_draft(path: str) -> bool:
    return any(part in NO_CONTENT for part in path.split("/")[:-1])


def _describes(page: MarkdownPage) -> bool:
    folder, _, name = page.path.rpartition("/")
    return bool(folder) and name.lower() == "readme.md" and not page.tree


def _sections(page_folder: PageFolder, pages: list[MarkdownPage], locales: frozenset[str]) -> list[PageGroup]:
    members: dict[str, list[PageMember]] = {"home": [], "sections": []}
    patterns: dict[str, Counter[str]] = {"home": Counter(), "sections": Counter()}
    for page in pages:
        folder, _, file = page.path[len(page_folder.start) :].rpartition("/")
        locale, name = None, folder
        in_locale = folder.partition("/")[0] in locales
        if in_locale:
            locale, _, name = folder.partition("/")
        elif is_locale(file.split(".")[1]) and file.count(".") == 2:
            locale = file.split(".")[1]
            file = f"_index.{{locale}}.{file.split('.')[2]}"
        inner = f"{'{locale}/' if in_locale else ''}{'{name}/' if name else ''}"
        kind = "sections" if name else "home"
        members[kind].append(PageMember(page, name or "home", locale))
        patterns[kind][f"{page_folder.start}{inner}{file}"] += 1
    return [
        PageGroup(kind, _most_common_patterns(patterns[kind]), tuple(some), single=kind == "home")
        for kind, some in members.items()
    ]


def _most_common_patterns(patterns: Counter[str]) -> tuple[str, ...]:
    return tuple(pattern for pattern, _ in patterns.most_common())


def _collection(folders: TreeFolders, page_folder: PageFolder, pages: list[MarkdownPage]) -> PageGroup:
    folder, start = page_folder.folder, page_folder.start
    if "{locale}" in folder:
        inner = folder.partition("/")[2]
        if _has_only_index_page(page_folder, [page.path for page in pages]):
            return _single_in_locales(start, inner, pages)
        return _localized_group(inner or _name_of_all(folders, page_folder), start, inner, pages)
    here = f"{start}{folder}/"
    around = [page for page in pages if not page.path.startswith(here)]
    if around:
        inside = _plain_group(folder, here, [page for page in pages if page not in around])
        return _merge_groups(_localized_group(folder, start, folder, around), inside)
    tops = {page.path[len(here) :].partition("/")[0] for page in pages if "/" in page.path[len(here) :]}
    locales = {name for name in tops if is_locale(name) or name in folders.requested_locales}
    rest = [p for p in pages if p.path[len(here) :].partition("/")[0] not in locales]
    if not locales or not (_translate(here, locales, pages) if rest else are_locales(locales)):
        return _plain_group(folder, here, pages)
    found = _localized_group(folder, here, "", [p for p in pages if p not in rest])
    return _merge_groups(found, _plain_group(folder, here, rest))


def _name_of_all(folders: TreeFolders, page_folder: PageFolder) -> str:
    if page_folder.base:
        return "pages" if folders.is_generator_base(page_folder.base) else page_folder.base.rpartition("/")[2]
    return folders.root.resolve().name if folders.has_only_locales else "pages"


def _merge_groups(group: PageGroup, other: PageGroup) -> PageGroup:
    patterns = tuple(dict.fromkeys((*group.patterns, *other.patterns)))
    return replace(group, patterns=patterns, members=(*group.members, *other.members))


def _translate(here: str, locales: Iterable[str], pages: list[MarkdownPage]) -> bool:
    inside = {p.path[len(here) :] for p in pages}
    return any(f"{locale}/{name}" in inside for locale in locales for name in inside)


def _localized_group(folder: str, start: str, inner: str, pages: list[MarkdownPage]) -> PageGroup:
    members, patterns = [], Counter[str]()
    inner = inner or _common_list_folder(start, pages)
    below, index = f"{inner}/" if inner else "", _index_page_name(pages)
    for page in pages:
        locale, _, rest = page.path[len(start) :].partition("/")
        stem, ending = os.path.splitext(rest.removeprefix(below))
        name, _, file = stem.rpartition("/")
        if name and inner and file == index:
            members.append(PageMember(page, name, locale))
            patterns[f"{start}{{locale}}/{below}{{name}}/{file}{ending}"] += 1
        else:
            members.append(PageMember(page, stem, locale))
            patterns[f"{start}{{locale}}/{below}{{name}}{ending}"] += 1
    return PageGroup(folder, _most_common_patterns(patterns), tuple(members))


def _common_list_folder(start: str, pages: list[MarkdownPage]) -> str:
    inside = {page.path[len(start) :].partition("/")[2].partition("/")[0] for page in pages}
    common = next(iter(inside))
    return common if inside == {common} and common in LISTS else ""


def _single_in_locales(start: str, inner: str, pages: list[MarkdownPage]) -> PageGroup:
    below = [page.path[len(start) :].partition("/") for page in pages]
    patterns = dict.fromkeys(f"{start}{{locale}}/{rest}" for _, _, rest in below)
    members = [PageMember(page, inner, locale) for page, (locale, _, _) in zip(pages, below, strict=True)]
    return PageGroup(inner, tuple(patterns), tuple(members), single=True)


def _plain_group(folder: str, path_prefix: str, pages: list[MarkdownPage]) -> PageGroup:
    stems, index = {os.path.splitext(page.path)[0] for page in pages}, _index_page_name(pages)
    bundles = {
        os.path.dirname(stem)
        for stem in stems
        if os.path.basename(stem) == index and os.path.dirname(stem) != path_prefix.removesuffix("/")
    }
    suffixes = {lang for stem in stems for lang in [_suffix(stem, stems)] if lang}
    members, patterns = [], Counter[str]()
    lettered = _are_in_initial_folders([stem[len(path_prefix) :] for stem in stems])
    for page in pages:
        stem, ending = os.path.splitext(page.path)
        suffix = stem.rpartition(".")[2]
        locale = suffix if suffix in suffixes else None
        bare = stem.removesuffix(f".{locale}") if locale else stem
        bundle, file = os.path.split(bare)
        if bundle in bundles and file == index:
            members.append(PageMember(page, bundle[len(path_prefix) :], locale))
            patterns[f"{path_prefix}{{name}}/{file}{'.{locale}' if locale else ''}{ending}"] += 1
        elif lettered and _is_below_its_initial(bare[len(path_prefix) :]):
            members.append(PageMember(page, bare[len(path_prefix) + 2 :], locale))
            patterns[f"{path_prefix}{{initial}}/{{name}}{ending}"] += 1
        else:
            members.append(PageMember(page, bare[len(path_prefix) :], locale))
            patterns[f"{path_prefix}{{name}}{ending}"] += 1
    return PageGroup(folder, _most_common_patterns(patterns), tuple(members))


def _are_in_initial_folders(names: list[str]) -> bool:
    below = [name for name in names if _is_below_its_initial(name)]
    return len({name[0] for name in below}) > 2 and len(below) >= 0.9 * len(names)


def _is_below_its_initial(name: str) -> bool:
    return name[1:2] == "/" and name[2:3].lower() == name[0] and "/" not in name[2:]


def _index_page_name(pages: Iterable[MarkdownPage]) -> str:
    names = {os.path.basename(page.path).partition(".")[0] for page in pages}
    return SECTIONS if names == {SECTIONS} else "index"


def _suffix(stem: str, stems: Iterable[str]) -> str | None:
    # A suffix is only treated as a locale if the file also exists without the suffix.
    base, dot, last = stem.rpartition(".")
    return last if dot and is_locale(last) and base in stems else None


def _base_folder_groups(root: Path, page_folder: PageFolder, pages: list[MarkdownPage]) -> list[PageGroup]:
    plain = _plain_group("pages", page_folder.start, pages)
    nothing_else = not page_folder.base and _holds_nothing_else(root, pages)
    if len(pages) > MAX_SINGLES or nothing_else or _are_rows(pages):
        return [plain]
    names = sorted({member.name for member in plain.members})
    return [_single(name, [m for m in plain.members if m.name == name]) for name in names]


def _are_rows(pages: list[MarkdownPage]) -> bool:
    keys = Counter(key for page in pages for key in page.tree)
    data = not any(page.path.endswith(MARKDOWN) for page in pages)
    return data and len(pages) > 1 and sum(keys.values()) > 0.5 * len(pages) * len(keys)


def _holds_nothing_else(root: Path, pages: list[MarkdownPage]) -> bool:
    found = {entry.name for entry in root.iterdir() if not entry.name.startswith(".")}
    return found <= {page.path for page in pages} | {FILE, "content-types", "README.md"}


def _single(name: str, members: list[PageMember]) -> PageGroup:
    patterns = []
    for member in members:
        stem, ending = os.path.splitext(member.page.path)
        bare = stem.removesuffix(f".{member.locale}")
        patterns.append(f"{bare}.{{locale}}{ending}" if member.locale else f"{stem}{ending}")
    return PageGroup(name, tuple(dict.fromkeys(patterns)), tuple(members), single=True)


def _default_locale(locales: Iterable[str], groups: Iterable[PageGroup]) -> str:
    """Return English if any page is in English or has no locale, otherwise the most frequent locale.

    If a page exists both in English and without a locale, return UNKNOWN_LOCALE instead.
    """
    counts: Counter[str | None] = Counter()
    for each in groups:
        pairs = {(member.name, member.locale) for member in each.members}
        counts.update(locale for _, locale in pairs)
        if any((name, "en") in pairs for name, locale in pairs if locale is None):
            return UNKNOWN_LOCALE
    english = counts["en"] or counts[None] or not counts
    return "en" if english else max(sorted(locales), key=lambda code: counts[code])
