"""What the public is allowed to find: published documents, for feeds, sitemaps and redirects."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from server.auth.permissions import Actor
from server.documents.addresses import address_of
from server.documents.document import PUBLISHED, Document
from server.documents.path_rules import Layout
from server.index.budget import UNLIMITED, Budget
from server.schema.model import Type
from server.site.site import State


@dataclass(frozen=True, slots=True)
class PublicSite:
    """One state of a site, as the public sees it. `budget` limits the cost of the request."""

    state: State
    budget: Budget = UNLIMITED
    layout: Layout = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "layout", Layout(self.state.schema, self.state.settings))

    @property
    def actor(self) -> Actor:
        return Actor("public", self.state.settings.roles["public"])

    @property
    def types(self) -> list[Type]:
        """The content types that have public URLs and that the public is allowed to find."""
        urls, actor = self.state.settings.urls, self.actor
        types = self.state.schema.content_types
        return [t for t in types if t.singular in urls and actor.may(t.singular, "find")]

    def locales(self, type_: Type) -> tuple[str, ...]:
        locales = self.state.settings.locales
        return locales.available if type_.localized else (locales.default,)

    def documents(self) -> Iterator[tuple[Document, str]]:
        """Yield each published document with its public URL, in an order that depends only on the
        documents.
        """
        for type_ in self.types:
            for locale in self.locales(type_):
                order = self.state.snapshot.list(type_, locale, PUBLISHED)
                self.budget.spend(len(order))
                for document in order:
                    if address := self.address(document):
                        yield document, address

    def address(self, document: Document) -> str | None:
        return address_of(document, self.state.settings, self.layout)
