"""Rules for a single document."""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from typing import Any

from server.documents.constraints import Limits, option_errors
from server.documents.document import DRAFT, VALUES, Document
from server.documents.values import components_at, is_empty
from server.formats.text_positions import KeyPath, line_and_column
from server.formats.tree import SyntaxProblem
from server.problems import CONTENT_RULE, Problem
from server.schema.model import DEPRECATED, Attribute, ContentRule, Type
from server.site.check.alternative_texts import find_images_without_text
from server.site.check.audit import Audit
from server.site.check.levels import apply_severity, ignored_rules_by_line, is_ignored
from server.site.check.links import LinkTargets, broken_links, page_of, page_of_document
from server.site.check.page import Page


@dataclass(frozen=True, slots=True)
class CheckedDocument:
    """A document to be checked. `document` is None if its file is invalid."""

    page: Page
    document: Document | None
    targets: LinkTargets


# --- prose ----------------------------------------------------------------------------------------


def _broken_links(subject: CheckedDocument) -> Iterator[Problem]:
    return broken_links(subject.page, subject.targets)


def _missing_alts(subject: CheckedDocument) -> Iterator[Problem]:
    # In HTML, an empty `alt` is allowed.
    for passage in subject.page.passages:
        for link in passage.prose.links:
            if link.kind == "image" and link.alt is None:
                what, fix = (
                    "the image has no alternative text",
                    "describe the image for readers who can't see it",
                )
                place = (subject.page.path, link.line, what, fix, "warning", link.column)
                yield Problem(*place, "missing-alt", passage.key_path)  # type: ignore[arg-type]


def _heading_jumps(subject: CheckedDocument) -> Iterator[Problem]:
    # The first heading can have any level: the page's template contains the headings above it.
    path = subject.page.path
    for passage in subject.page.passages:
        before = 6
        for heading in passage.prose.headings:
            if heading.level > before + 1:
                what = f"a heading of level {heading.level} follows a heading of level {before}"
                fix = f"use level {before + 1}"
                place = (path, heading.line, what, fix, "warning", heading.column)
                yield Problem(*place, "heading-jump", passage.key_path)  # type: ignore[arg-type]
            before = heading.level


# --- values ---------------------------------------------------------------------------------------


def _deprecated_attributes(subject: CheckedDocument) -> Iterator[Problem]:
    document, types = subject.document, subject.page.schema.types_with_deprecated
    if document is None or document.type.uid not in types:
        return
    for at, attribute in _deprecated_in(document.type, document.read_row()[VALUES], ()):
        said = "" if attribute.deprecated == DEPRECATED else attribute.deprecated
        fix = said or "remove the value"
        yield _at_value(subject, at, f"{_name(at)} is deprecated", fix, "deprecated-attribute")


def _deprecated_in(type_: Type, values: Any, key_path: KeyPath) -> Iterator[tuple[KeyPath, Attribute]]:
    for attribute, value in zip(type_.attributes.values(), values, strict=True):
        inner = (*key_path, attribute.name)
        if attribute.deprecated and not is_empty(value) and value != attribute.default:
            yield inner, attribute
        for where, component in components_at(attribute, value, inner):
            yield from _deprecated_in(component.type, component.values, where)


def _content_rules(subject: CheckedDocument) -> Iterator[Problem]:
    # Drafts may be incomplete, so some of the limits do not apply to them.
    document = subject.document
    if document is None or not document.type.rules:
        return
    limits = Limits(is_draft=document.status == DRAFT)
    row = document.read_row()[VALUES]
    for rule in document.type.rules:
        for at, value in _values_at(document.type, row, rule.path, ()):
            for sentence in _broken(rule, value, limits):
                message = f"{_name(at)}: {rule.message}" if rule.message else f"{_name(at)} {sentence}"
                yield _at_value(subject, at, message, "", CONTENT_RULE, rule.severity)


def _broken(rule: ContentRule, value: Any, limits: Limits) -> list[str]:
    broken = option_errors(rule.limits, value, limits)
    enum = rule.limits.enum
    if enum and not is_empty(value) and str(value) not in enum and not limits.is_draft:
        broken.append(f'must be one of {", ".join(enum)} (found "{value}")')
    return broken[:1] if rule.message else broken


def _values_at(
    type_: Type, values: Any, names: tuple[str, ...], key_path: KeyPath
) -> Iterator[tuple[KeyPath, Any]]:
    name, *others = names
    attribute = type_.attributes.get(name)
    if attribute is None:
        return
    value, inner = values[list(type_.attributes).index(name)], (*key_path, name)
    if not others:
        yield inner, value
        return
    if is_empty(value) and not attribute.to_many:
        yield (*inner, *others), None
    for where, component in components_at(attribute, value, inner):
        yield from _values_at(component.type, component.values, tuple(others), where)


def _name(key_path: KeyPath) -> str:
    return ".".join(map(str, key_path))


def _at_value(
    subject: CheckedDocument, key_path: KeyPath, message: str, fix: str, rule: str, severity: Any = "warning"
) -> Problem:
    try:
        line, column = line_and_column(subject.page.position(key_path))
    except SyntaxProblem:
        line, column = None, None
    return Problem(subject.page.path, line, message, fix, severity, column, rule, key_path)


def _undescribed_images(subject: CheckedDocument) -> Iterator[Problem]:
    if subject.document is not None:
        yield from find_images_without_text(subject.page, subject.document, subject.targets.audit.snapshot)


# --- table ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Rule:
    name: str
    find: Callable[[CheckedDocument], Iterator[Problem]]
    reads_prose: bool = False


DOCUMENT_RULES: tuple[_Rule, ...] = (
    _Rule("broken-link", _broken_links, reads_prose=True),
    _Rule("missing-alt", _missing_alts, reads_prose=True),
    _Rule("missing-alt", _undescribed_images),
    _Rule("heading-jump", _heading_jumps, reads_prose=True),
    _Rule("deprecated-attribute", _deprecated_attributes),
    _Rule(CONTENT_RULE, _content_rules),
)


def find_in_documents(
    audit: Audit, paths: Collection[str] | None = None, targets: LinkTargets | None = None
) -> Iterator[Problem]:
    """Yield the problems in the documents at `paths`, or in all documents if `paths` is None."""
    rules = [rule for rule in DOCUMENT_RULES if audit.settings.severity_of(rule.name) != "off"]
    targets = targets or LinkTargets(audit)
    for path, document in audit.documents.items():
        if paths is None or path in paths:
            audit.checkpoint()
            yield from _find_in_document(audit, document, targets, rules)
    for path in sorted(audit.claims.keys() - audit.documents.keys()):
        if paths is None or path in paths:
            audit.checkpoint()
            yield from _find_in_invalid(audit, path, targets, rules)


def _find_in_document(
    audit: Audit, document: Document, targets: LinkTargets, rules: Collection[_Rule]
) -> Iterator[Problem]:
    quick = page_of_document(audit, document)
    exact = replace(quick, document=None)
    for rule in rules:
        if rule.reads_prose:
            found = rule.find(CheckedDocument(quick, document, targets)) if quick.has_prose else iter(())
            if next(found, None) is None:
                continue
        yield from rule.find(CheckedDocument(exact, document, targets))


def _find_in_invalid(
    audit: Audit, path: str, targets: LinkTargets, rules: Collection[_Rule]
) -> Iterator[Problem]:
    page = page_of(audit, path)
    if page is not None and page.has_prose:
        for rule in rules:
            if rule.reads_prose:
                yield from rule.find(CheckedDocument(page, None, targets))


def check_text(
    audit: Audit, path: str, text: str, document: Document | None, targets: LinkTargets | None = None
) -> tuple[Problem, ...]:
    """Return the problems in a document's text, which may be unsaved.

    `document` is None if the text is invalid. `targets` is a cache that can be reused until the site changes.
    """
    page = page_of(audit, path, text)
    if page is None:
        return ()
    subject = CheckedDocument(page, document, targets or LinkTargets(audit))
    ignored = ignored_rules_by_line(text)
    return tuple(
        apply_severity(audit.settings, problem)
        for rule in DOCUMENT_RULES
        if audit.settings.severity_of(rule.name) != "off"
        for problem in rule.find(subject)
        if not audit.settings.ignores(problem) and not is_ignored(problem, ignored)
    )
