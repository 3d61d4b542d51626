"""The file `/llms.txt`, which lists public documents for language models (https://llmstxt.org)."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from server.auth.permissions import Actor
from server.errors import NotFoundError
from server.index.budget import UNLIMITED, Budget
from server.index.find import Listing, find, find_single
from server.query.ast import Page
from server.schema.model import Type
from server.service.markdown.document import Links
from server.service.markdown.read import entry_attributes, render_entry
from server.service.markdown.syntax import escape_start, escaped_line, heading, link
from server.service.read import Reader
from server.service.render import Renderer
from server.site.site import State

NAME = "llms.txt"
MEDIA_TYPE = "text/plain; charset=utf-8"
_NOTE = "The links lead to Markdown. Without `.md`, the same addresses return JSON."
_MIN_ENTRY_BYTES = len("- [a](/api/b/c.md)\n")


@dataclass(frozen=True, slots=True)
class _Public:
    state: State
    links: Links
    budget: Budget

    @property
    def types(self) -> list[Type]:
        subjects, names = self.state.schema.subjects, self.state.settings.llms.types
        chosen = [subjects[n] for n in dict.fromkeys(names) if n in subjects]
        return [
            type_
            for type_ in (chosen if names else self.state.schema.content_types)
            if self.links.actor.may(type_.singular, "find")
        ]

    def may_link(self, type_: Type) -> bool:
        return self.links.actor.may(type_.singular, "find" if type_.kind == "singleType" else "findOne")


def llms_text(state: State, budget: Budget = UNLIMITED) -> bytes:
    """Return the content of `/llms.txt`. Raises NotFoundError if `llms.enabled` is not set."""
    settings = state.settings.llms
    if not settings.enabled:
        raise NotFoundError()
    actor = Actor("public", state.settings.roles["public"])
    links = Links(state.schema, actor, state.settings.locales.default, origin=settings.url)
    site = _Public(state, links, budget)
    lines = [heading(1, escaped_line(settings.title or state.settings.name)), ""]
    lines += [f"> {escape_start(escaped_line(settings.summary))}", ""] if settings.summary else []
    lines += [_NOTE]
    types = site.types
    for number, type_ in enumerate(types):
        # The remaining bytes are shared equally between this type and the types after it.
        left = settings.max_size - _size(lines)
        if section := _section_lines(site, type_, left // (len(types) - number) - 1):
            lines += ["", *section]
    text = "\n".join([*lines, ""]).encode()
    budget.write(len(text))
    return text


def _section_lines(site: _Public, type_: Type, size: int) -> list[str]:
    documents, total = _listed_documents(site, type_, size // _MIN_ENTRY_BYTES)
    name, locales = type_.display or type_.singular, site.state.settings.locales
    others = [
        f"- {link(f'{name} ({locale})', site.links.markdown_url(type_, locale=locale))}"
        for locale in locales.available
        if type_.localized and locale != locales.default
    ]
    head = [heading(2, escaped_line(name)), ""]
    longest_rest = _rest_link(site, type_, total, total) + str(total)
    left = size - _size([*head, longest_rest, *others])
    if not total or left < 0:
        return []
    entries: list[str] = []
    for value in documents if site.may_link(type_) else ():
        entry = render_entry(type_, value, site.links)
        left -= _size([entry])
        if left < 0:
            break
        entries.append(entry)
    rest = [_rest_link(site, type_, len(entries), total)] if len(entries) < total else []
    return [*head, *entries, *rest, *others]


def _listed_documents(
    site: _Public, type_: Type, max_documents: int
) -> tuple[Iterator[Mapping[str, Any]], int]:
    reader = Reader(site.state, type_, site.links.actor, budget=site.budget)
    query = reader.query({"fields": entry_attributes(type_)}, many=True)
    view = reader.view(query)
    if type_.kind == "singleType":
        single = find_single(view, query)
        found = Listing([single] if single else [], 1 if single else 0)
    else:
        found = find(view, query._replace(page=Page(0, max_documents, 1)))
    render = Renderer(view).renderer_for(query.selection)
    return (json.loads(render(document)) for document in found.documents), found.total


def _rest_link(site: _Public, type_: Type, shown: int, total: int) -> str:
    page = shown // site.state.settings.api.page_size.default + 1
    address = site.links.markdown_url(type_, **({"pagination[page]": str(page)} if page > 1 else {}))
    return f"- {link(f'{total - shown} more' if shown else f'All {total}', address)}"


def _size(lines: Iterable[str]) -> int:
    return sum(len(line.encode()) + 1 for line in lines)
