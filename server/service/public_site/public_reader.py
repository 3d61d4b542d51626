"""Published documents that the public may read, and their URLs."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from server.auth.permissions import Actor
from server.documents.addresses import address_of, pattern_of
from server.documents.document import PUBLISHED, Document
from server.documents.path_rules import Layout
from server.index.budget import UNLIMITED, Budget
from server.index.fragments import Make
from server.schema.model import Type
from server.site.site import State


@dataclass(frozen=True, slots=True)
class PublicSite:
    """One state of a site, as the public sees it."""

    state: State
    budget: Budget = UNLIMITED
    layout: Layout = field(init=False)
    # by content type and locale
    _addresses: dict[tuple[str, str], Make] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "layout", Layout(self.state.schema, self.state.settings))

    @property
    def actor(self) -> Actor:
        return Actor("public", self.state.settings.roles["public"])

    @property
    def types(self) -> list[Type]:
        urls, actor = self.state.settings.urls, self.actor
        types = self.state.schema.content_types
        return [t for t in types if t.singular in urls and actor.may(t.singular, "find")]

    def locales(self, type_: Type) -> tuple[str, ...]:
        locales = self.state.settings.locales
        return locales.available if type_.localized else (locales.default,)

    def documents(self) -> Iterator[tuple[Document, str]]:
        for type_ in self.types:
            for locale in self.locales(type_):
                order = self.state.snapshot.list(type_, locale, PUBLISHED)
                self.budget.spend(len(order))
                address_of = self.url_maker(type_, locale)
                for document in order:
                    if address := address_of(document):
                        yield document, address.decode()

    def address(self, document: Document) -> str | None:
        return self.url_maker(document.type, document.locale)(document).decode() or None

    def url_maker(self, type_: Type, locale: str) -> Make:
        """Return a function that takes a document, and returns its URL, or b"" if it has no URL."""
        key = type_.uid, locale
        if key not in self._addresses:
            self._addresses[key] = self.cached("address", type_, locale, self._make_address(type_, locale))
        return self._addresses[key]

    def cached(self, purpose: str, type_: Type, locale: str, make: Make) -> Make:
        """Return a function that does the same as `make`, but caches the results.

        The results must depend only on the document and its URL. `purpose` is part of the cache key.
        """
        pattern = pattern_of(type_, locale, self.state.settings) or ""
        rules = self.layout.rules if "{name}" in pattern else None
        return self.state.snapshot.fragments.cached((purpose, type_.uid, locale, pattern, rules), make)

    def _make_address(self, type_: Type, locale: str) -> Make:
        pattern, layout = pattern_of(type_, locale, self.state.settings), self.layout

        def make(document: Document) -> bytes:
            address = address_of(document, pattern, layout) if pattern else None
            return address.encode() if address else b""

        return make
