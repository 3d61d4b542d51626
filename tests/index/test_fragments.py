"""The cache of rendered fragments: fragments are rendered once, limited in number, and freed with their
documents.
"""

import gc
from weakref import ref

from server.documents.document import Document, make_version
from server.documents.values import Component
from server.index.fragments import Fragments
from server.schema.model import Attribute, Type

PART = Type("x.part", "component", "part", "parts", "Part", {"text": Attribute("text", "string")})
NOTE = Type(
    "api::note.note",
    "collectionType",
    "note",
    "notes",
    "Note",
    {"parts": Attribute("parts", "component", component="x.part", repeatable=True)},
)
TIMESTAMPS = ("2024-01-01T00:00:00.000Z",) * 3


class Note(Document):
    """A document that can be weakly referenced."""

    __slots__ = ("__weakref__",)


def note(i: int, *parts: Component) -> Document:
    made = make_version(NOTE, f"n{i}", [parts], TIMESTAMPS, "en", f"n{i}.md")
    return Note(NOTE, made.row, made.status, made.path)


def test_a_fragment_is_rendered_once_per_selection() -> None:
    fragments, document, made = Fragments(), note(0), []

    def render(item: Document) -> bytes:
        made.append(item)
        return b"%d" % len(made)

    assert [fragments.cached(shown, render)(document) for shown in ("a", "b", "a")] == [b"1", b"2", b"1"]


def test_the_cache_stays_bounded_with_long_keys() -> None:
    fragments, documents = Fragments(1_000_000), [note(i) for i in range(20)]
    for i in range(300):
        get = fragments.cached((f"{i:05}" * 2000, "name"), lambda _: b"x" * 500)
        for document in documents:
            get(document)
        assert 0 < fragments.cache.bytes <= 1_000_000


def test_a_group_that_outgrows_the_bound_is_dropped() -> None:
    fragments, documents = Fragments(200_000), [note(i) for i in range(1000)]
    for document in documents:
        assert fragments.cached("all", lambda d: d.document_id.encode() * 100)(document).startswith(b"n")
        assert fragments.cache.bytes <= 200_000
    assert fragments.cached("all", lambda _: b"again")(documents[0]) == b"again"


def test_fragments_of_removed_documents_and_their_components_are_freed() -> None:
    fragments, inner = Fragments(), Component(PART, (1, "text"))
    gone, stays = note(0, inner), note(1)
    for item in (gone, inner, stays):
        fragments.cached("a", lambda _: b"first")(item)
    watch = ref(gone)
    fragments.forget([gone])
    del gone
    gc.collect()
    assert watch() is None
    assert fragments.cached("a", lambda _: b"second")(inner) == b"second"
    assert fragments.cached("a", lambda _: b"second")(stays) == b"first"
