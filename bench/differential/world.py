"""The documents and files that currently exist on the servers. Random requests refer to them."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from bench.differential.model import LOCALES, Model, Type

Version = tuple[str, str]  # (locale, status)


@dataclass
class Document:
    """A document: its reference, its versions, and the values that were written last."""

    name: str
    uid: str
    versions: set[Version] = field(default_factory=set)
    said: dict[str, Any] = field(default_factory=dict)

    @property
    def reference(self) -> str:
        return f"«doc:{self.name}»"

    def number(self) -> str:
        locale, status = min(self.versions, key=lambda v: (v[0] != LOCALES[0], v[1] != "published", v))
        return f"«id:{self.name}:{status}:{locale}»"


@dataclass
class World:
    """All documents by name, and all uploaded files."""

    model: Model
    documents: dict[str, Document] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)
    _count: int = -1

    def new(self, uid: str) -> Document:
        self._count += 1
        return Document(str(self._count), uid)

    def add(self, uid: str) -> Document:
        made = self.new(uid)
        self.documents[made.name] = made
        return made

    def of(self, uid: str, version: Version | None = None) -> list[Document]:
        return [d for d in self.documents.values() if d.uid == uid and (not version or version in d.versions)]

    def type_of(self, document: Document) -> Type:
        return self.model.types[document.uid]

    def said(self, uid: str, name: str) -> Iterator[Any]:
        for document in self.of(uid):
            if document.said.get(name) is not None:
                yield document.said[name]

    def copy(self) -> "World":
        documents = {
            name: Document(d.name, d.uid, set(d.versions), dict(d.said)) for name, d in self.documents.items()
        }
        return World(self.model, documents, list(self.files), self._count)
