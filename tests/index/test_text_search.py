"""Full-text search in blocks of joined texts finds the same documents as a search in each document."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from server.documents.document import Document, make_version
from server.index import text_search, type_table
from server.index.budget import Budget
from server.index.ordering import bits_of, bits_of_slots, slots_of
from server.index.text_search import MAX_CACHED_CHARS, containing, prepare
from server.index.type_table import NO_SLOTS
from server.schema.model import Attribute, Type
from tests.conftest import MakeApi
from tests.sites import collection, documents

ATTRIBUTES = {name: Attribute(name, "text") for name in ("text", "title")}
NOTE = Type("api::note.note", "collectionType", "note", "notes", "Note", ATTRIBUTES)
AT, TITLE = NOTE.position["text"], NOTE.position["title"]
LETTERS = "ab -\n.é_1ßẞ漢𝄞\ud800"


@pytest.fixture(autouse=True, scope="module")
def _small_chunks() -> object:
    """Reduce the block size to four documents, and the limits that decide how many documents are tested one
    by one.
    """
    patch = pytest.MonkeyPatch()
    patch.setattr(type_table, "SLOT_BITS", 2)
    patch.setattr(type_table, "_SLOT_MASK", 3)
    patch.setattr(text_search, "SLOT_BITS", 2)
    patch.setattr(text_search, "_SAMPLE_MATCHES", 2)
    patch.setattr(text_search, "_MAX_TESTED_DOCUMENTS", 1)
    yield
    patch.undo()


def note(i: int, text: str | None, title: str | None = None) -> Document:
    timestamp = f"2024-01-01T00:00:{i:02d}.000Z"
    return make_version(NOTE, f"n{i}", [text, title], (timestamp,) * 3, "en", f"n{i}.md")


@pytest.fixture(params=["memmem", "bytes.find"])
def either_function(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run each test with the C library's `memmem` and without it."""
    if request.param == "bytes.find":
        monkeypatch.setattr(text_search, "_memmem", None)
    elif text_search._memmem is None:
        pytest.skip("this C library has no memmem")


TEXT = st.none() | st.text(LETTERS, max_size=12)


@pytest.mark.usefixtures("either_function")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(TEXT, TEXT), max_size=20), st.text(LETTERS, min_size=1, max_size=4))
def test_it_finds_every_document_whose_text_contains_another(
    texts: list[tuple[str | None, str | None]], text: str
) -> None:
    documents = [note(i, *both) for i, both in enumerate(texts)]
    slots = NO_SLOTS.with_changes([], documents)
    sought = text.casefold()
    for columns in ([AT], [TITLE], [AT, TITLE], [TITLE, AT]):
        expected = [d for d in documents if any(sought in (d.row[at] or "").casefold() for at in columns)]
        assert containing(slots, columns, sought, Budget()) == bits_of(expected)


def test_prepared_texts_are_searched_in_the_same_way() -> None:
    notes = [note(i, text) for i, text in enumerate(["Low tide", None, "TIDES"])]
    slots = NO_SLOTS.with_changes([], notes)
    prepare(slots, [AT])
    assert containing(slots, [AT], "tide", Budget()) == bits_of([notes[0], notes[2]])
    tidal = note(3, "tidal")
    later = slots.with_changes([notes[0]], [tidal])
    assert containing(later, [AT], "tid", Budget()) == bits_of([notes[2], tidal])
    assert containing(slots, [AT], "tid", Budget()) == bits_of([notes[0], notes[2]])


def test_no_match_spans_two_documents() -> None:
    slots = NO_SLOTS.with_changes([], [note(0, "low"), note(1, "tide")])
    assert containing(slots, [AT], "lowtide", Budget()) == 0
    assert containing(slots, [AT], "low\0tide", Budget()) == 0


def test_results_are_cached_until_a_change(make_api: MakeApi) -> None:
    api = make_api(
        {**collection("note", {"text": "text"}), **documents("notes", a={"text": "one two"}, b={})}
    )
    for page in ("", "&sort=text", "&pagination[page]=1"):
        assert api.get(f"/api/notes?_q=TWO{page}").ids == ["a"]
    assert api.site.state.snapshot.search_results.cache.bytes > 0
    api.put("/api/notes/b", {"text": "two"})
    assert api.get("/api/notes?_q=two").ids == ["a", "b"]
    api.put("/api/notes/a", {"text": "one"})
    assert api.get("/api/notes?_q=two").ids == ["b"]
    assert api.get(f"/api/notes?_q={'x' * (MAX_CACHED_CHARS + 1)}").ids == []
    assert all(
        len(key.text) <= MAX_CACHED_CHARS for key, _ in api.site.state.snapshot.search_results.cache.items()
    )


def test_dense_and_sparse_sets_are_equal() -> None:
    for slots in ([], [0], [7, 8, 300], [3, 1, 2], list(range(40)), list(range(5, 90, 2))):
        assert slots_of(bits_of_slots(slots)) == sorted(slots)
