"""A `SortedChunks` sequence behaves like a sorted list, and changing a copy leaves the original unchanged."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.index import sorted_chunks
from server.index.sorted_chunks import SortedChunks

ITEMS = st.lists(st.integers(0, 60), max_size=12)


def key(item: int) -> tuple[int]:
    return (item,)


@pytest.fixture(autouse=True, scope="module")
def _small_chunks() -> object:
    """Reduce the chunk size to four, so that a few items fill several chunks."""
    patch = pytest.MonkeyPatch()
    patch.setattr(sorted_chunks, "CHUNK_ITEMS", 4)
    yield
    patch.undo()


@given(st.sets(st.integers(0, 60)), st.lists(st.tuples(ITEMS, ITEMS), max_size=12), st.data())
def test_it_is_a_sorted_list_under_any_changes(
    start: set[int], changes: list[tuple[list[int], list[int]]], data: st.DataObject
) -> None:
    items, made = set(start), SortedChunks.build(start, key)
    versions = [(made, sorted(items))]
    for out, in_ in changes:
        gone = set(out)
        come = set(in_) - (items - gone)  # Items that are already in the sequence are not added again.
        made = made.with_changes(gone, come)
        items = (items - gone) | come
        versions.append((made, sorted(items)))
    for version, expected in versions:
        assert list(version) == expected
        assert len(version) == len(expected)
        low, high = data.draw(st.integers(-2, 62)), data.draw(st.integers(-2, 62))
        assert version.slice(low, high) == expected[max(low, 0) : max(high, 0)]
        between = [item for span, _ in version.spans((low,), (high,)) for item in span]
        assert between == [item for item in expected if low <= item < high]
        after = [item for span, _ in version.spans((low,)) for item in span]
        assert after == [item for item in expected if low <= item]
        for chunk, notes in version.chunks:
            assert notes.setdefault("items", chunk) == chunk  # notes that belong to this chunk only


def test_removing_a_missing_item_does_nothing() -> None:
    made = SortedChunks.build([2, 4], key)
    assert list(made.with_changes([1, 3, 5], [])) == [2, 4]
    assert list(SortedChunks(key).with_changes([1], [])) == []


def test_a_small_change_of_a_long_sequence_shares_its_chunks() -> None:
    before = SortedChunks.build(range(0, 2000, 2), key)
    after = before.with_changes([0], [1001])
    shared = {id(chunk) for chunk in before._chunks} & {id(chunk) for chunk in after._chunks}
    assert len(shared) >= len(before._chunks) - 3
    assert list(before) == list(range(0, 2000, 2))
    assert list(after) == sorted({*range(2, 2000, 2), 1001})


def test_chunks_stay_small_when_items_cluster() -> None:
    made = SortedChunks.build([0, 10**6], key)
    for item in range(1, 500):
        made = made.with_changes([], [item])
    assert list(made) == [*range(500), 10**6]
    assert max(map(len, made._chunks)) <= 2 * sorted_chunks.CHUNK_ITEMS
