"""Detection of folders named after locales."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from os.path import splitext

from server.config.values import LOCALE
from server.documents.locale_names import is_language


@dataclass(frozen=True)
class LocaleParent:
    """A folder that contains a subfolder for each locale.

    If `has_default_files` is set, the folder itself contains the files in the default locale.
    """

    folder: str
    locales: frozenset[str]
    has_only_locales: bool
    has_default_files: bool

    def path_in_locale(self, path: str) -> str | None:
        """Return the part of a path below its locale folder, or None if it is not in a locale folder."""
        start = f"{self.folder}/" if self.folder else ""
        if not path.startswith(start):
            return None
        locale, slash, rest = path[len(start) :].partition("/")
        return rest if slash and locale in self.locales else None


def is_locale(name: str) -> bool:
    return bool(LOCALE.fullmatch(name)) and is_language(name)


def are_locales(folders: Iterable[str]) -> bool:
    # If there is only one such name, such as `it`, it could mean something else.
    names = set(folders)
    return bool(names) and all(map(is_locale, names)) and (len(names) > 1 or names == {"en"})


def find_locale_parents(
    paths: Iterable[str], requested_locales: Collection[str] = ()
) -> Mapping[str, LocaleParent]:
    """Find the outermost folders that contain locale folders. The keys of the result are their paths."""
    below: dict[str, list[str]] = defaultdict(list)
    for path in paths:
        parts = path.split("/")
        for depth, part in enumerate(parts[:-1]):
            if part in requested_locales or is_locale(part):
                below["/".join(parts[:depth])] = []
    for path in paths:
        for end in (0, *(i for i, character in enumerate(path) if character == "/")):
            if (parent := path[:end]) in below:
                below[parent].append(path[end + 1 if end else 0 :])
    found: dict[str, LocaleParent] = {}
    for parent in sorted(below, key=lambda folder: folder.count("/") + bool(folder)):
        if any(outer.path_in_locale(f"{parent}/") is not None for outer in found.values()):
            continue
        made = _locale_parent(parent, below[parent], requested_locales)
        if made is not None:
            found[parent] = made
    return found


def _locale_parent(parent: str, inside: list[str], requested_locales: Collection[str]) -> LocaleParent | None:
    shapes: dict[str, set[str]] = defaultdict(set)
    files = set()
    for path in inside:
        top, slash, rest = path.partition("/")
        if not slash:
            files.add(splitext(path)[0])
        else:
            shapes[top].update(_shape(rest))
    codes = {name for name in shapes if is_locale(name)}
    if codes == shapes.keys() and are_locales(codes):
        return LocaleParent(parent, frozenset(codes), has_only_locales=True, has_default_files=False)
    others = {name: shape for name, shape in shapes.items() if name not in codes}
    alike = {code for code in codes if any(shapes[code] & shapes[other] for other in codes - {code})}
    common = set.union(set(), *(shapes[code] for code in alike))
    if "en" not in alike and any(shape & common for shape in others.values()):
        alike = set()  # For example, hr/ and it/ next to sales/ are departments.
    own = {f"{name}/{step}" for name, shape in others.items() for step in shape} | files
    chosen = alike | {name for name in shapes if name in requested_locales}
    if not chosen:
        return None
    return LocaleParent(
        parent,
        frozenset(chosen),
        has_only_locales=False,
        has_default_files=any(shapes[c] & own for c in chosen),
    )


def _shape(path: str) -> Iterable[str]:
    return (*(path[:i] for i, character in enumerate(path) if character == "/"), splitext(path)[0])
