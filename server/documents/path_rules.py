"""Mapping of file paths to content types, names, locales and draft status (docs/files.md)."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath

from server.config.model import Settings
from server.documents.ids import id_of_name, to_nfc
from server.paths import CONTENT
from server.schema.model import Schema, Type

MARKDOWN = (".md", ".mdx", ".markdown")
YAML = (".yaml", ".yml")
TOML = ".toml"
_DRAFT_SUFFIX = ".draft"
ENDINGS = (*MARKDOWN, *YAML, ".json", TOML)


@dataclass(frozen=True, slots=True)
class PathClaim:
    """The document version to which a file path belongs."""

    type: Type
    name: str
    locale: str
    draft: bool

    @property
    def document_id(self) -> str:
        # A `documentId` in the file takes precedence.
        return id_of_name(self.name)

    @property
    def identity(self) -> tuple[object, ...]:
        """A value for comparing two claims, which may have been made with different schemas.

        It is equal if both schemas assign the path to the same version.
        """
        key = self.type.draft_key if self.type.draft_publish else None
        locale = self.locale if self.type.localized else ""
        return (self.type.uid, self.name, locale, self.draft, key and (key.name, key.value))


@dataclass(frozen=True, eq=False)
class Layout:
    """The rules that map the paths of files to documents."""

    schema: Schema
    settings: Settings

    @cached_property
    def _folders(self) -> Mapping[str, Type]:
        return {t.plural: t for t in self.schema.content_types if t.kind == "collectionType" and not t.files}

    @cached_property
    def _singles(self) -> Mapping[str, Type]:
        return {t.singular: t for t in self.schema.content_types if t.kind == "singleType" and not t.files}

    @cached_property
    def _patterns(self) -> list[tuple[str, re.Pattern[str], Type]]:
        # the most specific patterns first
        found = [(p, t) for t in self.schema.content_types for p in t.files]
        return [(p, _compile(p), t) for p, t in sorted(found, key=lambda each: _precision(each[0]))]

    @cached_property
    def roots(self) -> tuple[str, ...]:
        """The outermost folders that can contain documents. "" stands for the site's folder."""
        found = {CONTENT, *(_fixed_folder(p) for t in self.schema.content_types for p in t.files)}
        return tuple(sorted(f for f in found if not any(f != o and _inside(f, o) for o in found)))

    @cached_property
    def rules(self) -> tuple[object, ...]:
        types = (
            (t.uid, t.kind, t.singular, t.plural, t.files, t.localized, t.draft_publish, t.draft_key)
            for t in sorted(self.schema.content_types, key=lambda each: each.uid)
        )
        return self.settings.locales, tuple(types)

    def claim(self, path: str) -> PathClaim | None:
        """Return the document version to which a path belongs, or None if no document can be at this path."""
        for _, claim in self._claims(path):
            return claim
        if not path.startswith("content/") or not path.endswith(ENDINGS):
            return None
        stem = path[len("content/") : path.rindex(".")]
        folder, slash, rest = stem.partition("/")
        if slash:
            found_type = self._folders.get(folder)
            return self._claim_of_name(found_type, rest) if found_type and rest else None
        return self._claim_single(stem)

    def path_of(self, claim: PathClaim, suffix: str, pattern: str | None = None) -> str:
        """Return the path for a document version.

        `suffix` is the extension. `pattern` is one of the patterns in `options.files`, by default the first.
        """
        draft_suffix = _DRAFT_SUFFIX if claim.draft else ""
        pattern = pattern or next(iter(claim.type.files), None)
        pattern = pattern and pattern.replace("{initial}", _initial(claim.name))
        if pattern and "{locale}" in pattern:
            made = pattern.replace("{locale}", claim.locale)
            return made.replace("{name}", claim.name + draft_suffix)
        named = claim.locale != self.settings.locales.default and claim.type.localized
        name = claim.name + (f".{claim.locale}" if named else "") + draft_suffix
        if pattern:
            return pattern.replace("{name}", name)
        if claim.type.kind == "singleType":
            return f"content/{name}{suffix}"
        return f"content/{claim.type.plural}/{name}{suffix}"

    def pattern_of(self, path: str) -> str | None:
        return next((pattern for pattern, _ in self._claims(path)), None)

    def sibling(self, path: str, *, draft: bool, locale: str | None = None) -> str | None:
        """Return the path of the draft or the published version of the document at `path`.

        The default for `locale` is the document's own locale. Return None if `path` can't contain a document.
        """
        claim = self.claim(path)
        if claim is None:
            return None
        wanted = PathClaim(claim.type, claim.name, locale or claim.locale, draft)
        return self.path_of(wanted, PurePosixPath(path).suffix, self.pattern_of(path))

    def _claims(self, path: str) -> Iterator[tuple[str, PathClaim]]:
        partial = is_partial(path)
        for pattern, compiled, type_ in self._patterns:
            if partial and "{name}" in pattern.rpartition("/")[2]:
                continue
            found = compiled.fullmatch(path)
            claim = self._claim_pattern(type_, found.groupdict()) if found else None
            if claim:
                yield pattern, claim

    def _claim_pattern(self, type_: Type, parts: Mapping[str, str]) -> PathClaim | None:
        name, locale = parts.get("name") or type_.singular, parts.get("locale")
        if parts.get("initial", _initial(name)) != _initial(name):
            return None
        if locale is None:
            return self._claim_of_name(type_, name)
        if locale not in self.settings.locales.available:
            return None
        name, draft = _cut_draft(type_, name)
        return PathClaim(type_, to_nfc(name), locale, draft)

    def _claim_single(self, stem: str) -> PathClaim | None:
        type_ = self._singles.get(stem.partition(".")[0])
        claim = self._claim_of_name(type_, stem) if type_ else None
        return claim if claim and claim.name == claim.type.singular else None

    def _claim_of_name(self, type_: Type, name: str) -> PathClaim:
        name, draft = _cut_draft(type_, name)
        locale = self.settings.locales.default
        if type_.localized:
            stem, dot, last = name.rpartition(".")
            if dot and stem and last in self.settings.locales.available:
                name, locale = stem, last
        return PathClaim(type_, to_nfc(name), locale, draft)


def is_partial(path: str) -> bool:
    # Site generators include files such as `_note.mdx` in other pages, but Hugo's `_index.md` is a page.
    name = path.rpartition("/")[2]
    return name.startswith("_") and name.partition(".")[0] != "_index"


def is_draft_name(path: str) -> bool:
    stem = PurePosixPath(path).stem
    return stem.endswith(_DRAFT_SUFFIX) and stem != _DRAFT_SUFFIX


def _cut_draft(type_: Type, name: str) -> tuple[str, bool]:
    if type_.draft_publish and name.endswith(_DRAFT_SUFFIX) and name != _DRAFT_SUFFIX:
        return name.removesuffix(_DRAFT_SUFFIX), True
    return name, False


def _compile(pattern: str) -> re.Pattern[str]:
    text = re.escape(pattern)
    for part, matched in (("name", ".+"), ("locale", "[^/]+"), ("initial", "[^/]")):
        text = text.replace(rf"\{{{part}\}}", f"(?P<{part}>{matched})")
    return re.compile(text)


def _initial(name: str) -> str:
    return name[:1].lower()


def _precision(pattern: str) -> tuple[bool, int]:
    # Patterns without `{name}` in the file name come first, then those with more literal text.
    return "{name}" in pattern.rpartition("/")[2], -len(re.sub(r"\{.*?\}", "", pattern))


def _fixed_folder(pattern: str) -> str:
    return pattern.partition("{")[0].rpartition("/")[0]


def _inside(path: str, folder: str) -> bool:
    return folder == "" or path == folder or path.startswith(folder + "/")
