"""Check for broken links.

A link to an unknown address is reported only if the front end is unlikely to have a page there.
"""

import os
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cached_property
from posixpath import basename, dirname, join, normpath, relpath, splitext
from urllib.parse import unquote

from server.documents.document import Document
from server.documents.ids import to_nfc
from server.documents.path_rules import MARKDOWN
from server.formats.prose import EXTERNAL, Link, normalize_anchor, possible_anchors
from server.formats.text_positions import KeyPath
from server.formats.tree import SyntaxProblem
from server.paths import UPLOADS, UPLOADS_URL
from server.problems import Problem
from server.schema.spelling import Suggestions
from server.site.aliases import normalize_path
from server.site.check.audit import Audit
from server.site.check.page import Page
from server.site.check.page_links import PageLinks
from server.site.check.path_aliases import PathAliases
from server.storage.images.variants import split_variant_path
from server.storage.media import mime_type, upload_path

_FILE_KINDS = ("image/", "audio/", "video/", "font/", "application/pdf")
# The destination of such a link is computed by a template.
_TEMPLATE = re.compile(r"[{}<>$]|%7B|\[\[", re.IGNORECASE)
# Anchors that are not headings: the top of the page, parts of the text, routes, and footnotes.
_GENERAL_ANCHOR = re.compile(r"top$|:~:|[/!?]|fn", re.IGNORECASE)
_GITHUB_PREFIX = "user-content-"


class LinkTargets:
    """Cached lookup of the files that links point to."""

    def __init__(self, audit: Audit) -> None:
        self.audit = audit
        self._suggestions = Suggestions()
        self._anchors: dict[str, tuple[frozenset[str], frozenset[str]]] = {}
        self._exist: dict[str, bool] = {}
        self._fixes: dict[tuple[str, str, str], str] = {}
        self.pages = PageLinks(audit, self._suggestions)
        self._aliases = PathAliases(audit.root)

    def find_fault(self, page: Page, link: Link) -> tuple[str, str] | None:
        """Return what is wrong with a link and how to fix it, or None if nothing is wrong."""
        what = "the image" if link.kind == "image" else "the link"
        if link.kind == "undefined":
            if link.target.casefold() in page.defined_references:
                return None
            return (
                f'{what} refers to "[{link.target}]", which is not defined in this text',
                f'add a line "[{link.target}]: …" with the destination, or correct the name',
            )
        if not link.target:
            return f"{what} has no destination", "add the destination, or remove the link"
        if link.is_named or EXTERNAL.match(link.target) or _TEMPLATE.search(link.target):
            return None
        path, _, fragment = link.target.partition("#")
        target = unquote(path.partition("?")[0])
        found = self.resolve(page.path, target) if target else page.path
        if found is None:
            fault = self.pages.find_fault(page.path, target) if target.startswith("/") else None
            return (f"{what} {fault[0]}", fault[1]) if fault else None
        if target and not self.exists(found) and not self.exists(_below_page(page.path, target)):
            return f"{what} leads to {found}, which does not exist", self._fix_of_path(page, target, found)
        if fragment and not self._has_anchor(page, found, unquote(fragment)):
            place = "this document" if found == page.path else found
            anchors = self._anchors_of(page, found)[0]
            near = self._suggestions.suggest(normalize_anchor(unquote(fragment)), sorted(anchors))
            fix = near.replace('"', '"#', 1) or "use the anchor of a heading"
            return f'{what} leads to the heading "#{unquote(fragment)}", which does not exist in {place}', fix
        return None

    def resolve(self, source_path: str, target: str) -> str | None:
        """Return the path of the file that a link in `source_path` points to, or None if it is not known.

        For a link to a page, this is the file of the page's document.
        """
        if target.startswith(UPLOADS_URL):
            return f"{UPLOADS}/{normpath(target.removeprefix(UPLOADS_URL))}"
        if target.startswith("/"):
            return self.pages.resolve(source_path, target)
        if target.endswith("/"):
            return None
        if not (target.endswith(MARKDOWN) or mime_type(target.lower()).startswith(_FILE_KINDS)):
            return None
        paths = self._aliases.candidate_paths(target)
        if paths is None:
            return normpath(join(dirname(source_path), target))
        return next(filter(self.exists, paths), next(iter(paths), None))

    def exists(self, path: str) -> bool:
        if path not in self._exist:
            self._exist[path] = self._look_up(path)
        return self._exist[path]

    def _look_up(self, path: str) -> bool:
        key = to_nfc(upload_path(path) or "")
        if key and (key in self.audit.snapshot.media or self._is_variant(key)):
            return True
        return path in self.audit.files or os.path.lexists(self.audit.root / path)

    def _is_variant(self, key: str) -> bool:
        of_picture = split_variant_path(key)
        return of_picture is not None and of_picture[1] in self.audit.snapshot.media

    # --- anchors ----------------------------------------------------------------------------------

    def _has_anchor(self, page: Page, path: str, fragment: str) -> bool:
        if not path.endswith(MARKDOWN) and path != page.path:
            return True
        anchor = normalize_anchor(fragment.removeprefix(_GITHUB_PREFIX))
        if not anchor or _GENERAL_ANCHOR.match(fragment):
            return True
        anchors, names = self._anchors_of(page, path)
        if anchor in anchors or any(one.endswith("-") and anchor.startswith(one) for one in anchors):
            return True
        return fragment in names  # The front end may also turn these words into anchors.

    def _anchors_of(self, page: Page, path: str) -> tuple[frozenset[str], frozenset[str]]:
        if path == page.path:
            return self._read_anchors(page, path, page.text)
        if path not in self._anchors:
            try:
                text = self.audit.text(path)
            except (OSError, SyntaxProblem):
                text = ""
            self._anchors[path] = self._read_anchors(page_of(self.audit, path, text), path, text)
        return self._anchors[path]

    def _read_anchors(self, page: Page | None, path: str, text: str) -> tuple[frozenset[str], frozenset[str]]:
        readings = self.audit.prose_cache
        found = readings.anchors(path, text)
        if found is None:
            anchors = page.anchors if page else readings.prose(text, 1).anchors
            found = anchors, possible_anchors(text)
            readings.set_anchors(path, text, found)
        return found

    # --- suggestions ------------------------------------------------------------------------------

    @cached_property
    def _paths_by_name(self) -> Mapping[str, list[str]]:
        found: dict[str, list[str]] = defaultdict(list)
        for path in self.audit.files:
            found[basename(path)].append(path)
        return found

    def _fix_of_path(self, page: Page, target: str, path: str) -> str:
        place = dirname(page.path), target, path
        if place not in self._fixes:
            self._fixes[place] = self._find_fix(page, target, path)
        return self._fixes[place]

    def _find_fix(self, page: Page, target: str, path: str) -> str:
        same = self._paths_by_name.get(basename(path), [])
        if len(same) == 1 and not target.startswith(UPLOADS_URL):
            return f'did you mean "{relpath(same[0], dirname(page.path))}"?'
        if len(same) == 1 and (key := upload_path(same[0])):
            return f'did you mean "{UPLOADS_URL}{key}"?'
        beside = [basename(p) for p in self._siblings.get(dirname(path), ())]
        near = self._suggestions.suggest(basename(path), beside)
        return near or "correct the link, or add the file"

    @cached_property
    def _siblings(self) -> Mapping[str, list[str]]:
        found: dict[str, list[str]] = defaultdict(list)
        for path in self.audit.files:
            found[dirname(path)].append(path)
        return found


def _below_page(path: str, target: str) -> str:
    # A page address can end with a slash, such as `/news/fog/` for `news/fog.md`.
    return normpath(join(splitext(path)[0], target))


def page_of(audit: Audit, path: str, text: str | None = None) -> Page | None:
    """Return the page of the file at `path`, or None if the file has no content type.

    If `text` is given, it replaces the text on disk.
    """
    claim = audit.layout.claim(path)

    def read() -> str:
        return audit.text(path) if text is None else text

    if claim is None:
        return None
    return Page(path, claim.type, audit.snapshot.schema, read, read_prose=audit.prose_cache.prose)


def page_of_document(audit: Audit, document: Document) -> Page:
    def read() -> str:
        return audit.text(document.path)

    return Page(document.path, document.type, audit.snapshot.schema, read, document, audit.prose_cache.prose)


def broken_links(
    page: Page, targets: LinkTargets, removed_targets: Mapping[str, frozenset[str] | None] | None = None
) -> Iterator[Problem]:
    for passage in page.passages:
        for link in passage.prose.links:
            if removed_targets is not None and not _points_to_removed(page, link, targets, removed_targets):
                continue
            if (fault := targets.find_fault(page, link)) is not None:
                yield _problem(page, link, passage.key_path, *fault)


def _points_to_removed(
    page: Page, link: Link, targets: LinkTargets, removed_targets: Mapping[str, frozenset[str] | None]
) -> bool:
    target, _, fragment = link.target.partition("#")
    target = unquote(target.partition("?")[0])
    path = targets.resolve(page.path, target) or (
        normalize_path(target) if target.startswith("/") else page.path
    )
    if path not in removed_targets:
        return False
    anchors = removed_targets[path]
    return anchors is None or normalize_anchor(unquote(fragment)) in anchors


def _problem(page: Page, link: Link, key_path: KeyPath, message: str, fix: str) -> Problem:
    return Problem(page.path, link.line, message, fix, "warning", link.column, "broken-link", key_path)
