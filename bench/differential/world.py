"""What is there at a point of time: the documents and files that requests may refer to."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from bench.differential.model import LOCALES, Model, Type

Version = tuple[str, str]  # locale and status


@dataclass
class Document:
    """A document: the name of its reference, its versions, and what it was last told to hold."""

    name: str
    uid: str
    versions: set[Version] = field(default_factory=set)
    said: dict[str, Any] = field(default_factory=dict)

    @property
    def reference(self) -> str:
        """What stands for its documentId in a request."""
        return f"«doc:{self.name}»"

    def number(self) -> str:
        """What stands for the number of a version of it: the default one, if it has that."""
        locale, status = min(self.versions, key=lambda v: (v[0] != LOCALES[0], v[1] != "published", v))
        return f"«id:{self.name}:{status}:{locale}»"


@dataclass
class World:
    """Every document, by name, and how many files there are."""

    model: Model
    documents: dict[str, Document] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)
    _count: int = -1

    def new(self, uid: str) -> Document:
        """A document that is not there yet."""
        self._count += 1
        return Document(str(self._count), uid)

    def add(self, uid: str) -> Document:
        """A new document; whoever calls gives its names to the servers."""
        made = self.new(uid)
        self.documents[made.name] = made
        return made

    def of(self, uid: str, version: Version | None = None) -> list[Document]:
        """The documents of a type; those alone that have a version."""
        return [d for d in self.documents.values() if d.uid == uid and (not version or version in d.versions)]

    def type_of(self, document: Document) -> Type:
        """The content type of a document."""
        return self.model.types[document.uid]

    def said(self, uid: str, name: str) -> Iterator[Any]:
        """The values that an attribute was told to hold, in any document of a type."""
        for document in self.of(uid):
            if document.said.get(name) is not None:
                yield document.said[name]

    def copy(self) -> "World":
        """A copy that can change on its own."""
        documents = {
            name: Document(d.name, d.uid, set(d.versions), dict(d.said)) for name, d in self.documents.items()
        }
        return World(self.model, documents, list(self.files), self._count)
