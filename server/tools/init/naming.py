"""Names of proposed content types."""

import re
from collections.abc import Iterable
from typing import Literal

import inflection

from server.auth.permissions import SITE_SUBJECTS
from server.formats.normal_form import normalize
from server.schema.check import RESERVED_IDS

# noun for documents in a folder whose name is not a plural
PageKind = Literal["post", "page", "entry"]

_POSTS = frozenset({"blog", "post", "posts"})
_HOME = frozenset({"index", "_index"})
# names that say nothing about the contents
_ANYTHING = "app content data pages site source src web website www"
_CONTAINERS = frozenset(_ANYTHING.split())
# singular folder names that suggest several documents
_THINGS = """
api article author book category chapter city client collection company country course customer doc
document episode event example exercise faq feature file film gallery game glossary guide image
integration job lesson library link location member movie note package page paper partner person
photo place playlist podcast post product profile project publication quote recipe region release
report review rule section service song speaker sponsor story study tag talk team term testimonial
tool topic tutorial user version video workshop
"""
_COUNTED = frozenset(_THINGS.split())
# Folder names without a singular. For example, a document in `news` is a `news-item`.
_STUFF = "data equipment feedback hardware media metadata press research software staff"
_UNCOUNTED = frozenset(_STUFF.split())
# plurals that the library converts incorrectly
_PLUS_S = "base cache cookie curve drive glove niche reserve selfie tie wave"
_PLUS_ES = "bonus canvas lens virus"
_SINGULARS = {
    **{f"{word}s": word for word in _PLUS_S.split()},
    **{f"{word}es": word for word in _PLUS_ES.split()},
    "criteria": "criterion",
    "feet": "foot",
    "leaves": "leaf",
    "phenomena": "phenomenon",
}
# words that end in -s but are not plurals
_WITH_S = re.compile(r".*(?<!men)(?<!gur)us|.*ss|atlas|bias|canvas|chess|css|gas|ios|js|lens|os|texas|this")
_ACRONYM_WORDS = "adr api css cv faq html id pdf qa rfc rss ui url ux"
_ACRONYMS = frozenset(_ACRONYM_WORDS.split())


def choose_api_ids(
    folder: str, used_ids: Iterable[str], *, single: bool = False, kind: PageKind = "page"
) -> tuple[str, str]:
    """Return an unused singular and an unused plural API id for a folder's content type.

    `kind` is appended to a name that has no plural, as in `about-page`.
    """
    # A content type `source`, for example, would take the permission source.read away from all roles.
    unavailable = {*used_ids, *RESERVED_IDS, *SITE_SUBJECTS, "file"}
    parts = [part for part in folder.split("/") if part]
    last = parts[-1] if parts else ""
    above = _slug(parts[-2]) if len(parts) > 1 else ""
    singular, plural = _single_ids(last) if single else _collection_ids(last, kind)
    wider = f"{above}-{singular}", f"{above}-{plural}"
    if unavailable.intersection((singular, plural)) and above and not unavailable.intersection(wider):
        return wider
    stem, number = singular, 1
    while singular in unavailable or plural in unavailable:
        number += 1
        singular = f"{stem}-page" if number == 2 else f"{stem}-{number}"
        plural = f"{singular}s"
    return singular, plural


def _single_ids(name: str) -> tuple[str, str]:
    slug = _slug(name)
    singular = "home" if slug in _HOME or not slug else slug
    return singular, f"{singular}-pages"


def _collection_ids(name: str, kind: PageKind) -> tuple[str, str]:
    slug, pages = _slug(name), inflection.pluralize(kind)
    if slug in _POSTS:
        return "post", "posts"
    if not slug or slug in _CONTAINERS:
        return kind, pages
    if not name.lstrip("_. ")[:1].isalpha() and slug.startswith("page-"):
        return slug, f"pages{slug.removeprefix('page')}"
    stem, dash, last = slug.rpartition("-")
    singular = _singular(last)
    if singular != last:
        return stem + dash + singular, slug
    if last in _UNCOUNTED or (inflection.pluralize(last) == last and not _WITH_S.fullmatch(last)):
        return f"{slug}-item", slug
    if last in _COUNTED:
        return slug, stem + dash + inflection.pluralize(last)
    return f"{slug}-{kind}", f"{slug}-{pages}"


def _singular(word: str) -> str:
    if word in _SINGULARS:
        return _SINGULARS[word]
    if word in _UNCOUNTED or word in _COUNTED or len(word) < 3 or _WITH_S.fullmatch(word):
        return word
    return inflection.singularize(word)


def _slug(text: str) -> str:
    plain = normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    slug = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")
    return slug if slug[:1].isalpha() else f"page-{slug}".strip("-")


def display_name(singular: str) -> str:
    """Return the display name for a singular API id, such as `Case Study` for `case-study`."""
    words = singular.split("-")
    return " ".join(word.upper() if word in _ACRONYMS else word.capitalize() for word in words)
