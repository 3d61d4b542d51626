"""The parser for bracket notation: it must return the same as `qs-codec`, a port of the library that clients
use.
"""

import json
from urllib.parse import quote

from hypothesis import given
from hypothesis import strategies as st
from qs_codec import DecodeOptions
from qs_codec import decode as decode_by_library

from server.query.brackets import MAX_DEPTH, MAX_LIST_ITEMS, decode

OPTIONS = DecodeOptions(
    depth=MAX_DEPTH, list_limit=MAX_LIST_ITEMS, parameter_limit=1000, strict_null_handling=True
)
inner = st.sampled_from(["[a]", "[b]", "[]", "[0]", "[1]", "[3]", "[99]", "[100]", "[01]", "[[a]]", "[²]"])
names = st.sampled_from(["a", "b", "é", "a ", "0", ""])
keys = st.builds(lambda name, parts: name + "".join(parts), names, st.lists(inner, max_size=3))
values = st.sampled_from(["", "=", "=x", "=y z&", "=[]=", "=1"])


def _agrees(parts: list[str]) -> bool:
    """Return whether both parsers return the same values in the same order."""
    wanted = decode_by_library("&".join(parts), OPTIONS)
    return json.dumps(decode(parts)) == json.dumps(wanted)


@given(pairs=st.lists(st.tuples(keys, values), max_size=6))
def test_contradicting_keys_are_merged(pairs: list[tuple[str, str]]) -> None:
    assert _agrees([quote(key, safe="[]") + quote(value, safe="[]=") for key, value in pairs])


@given(text=st.text("ab01[]=&+", max_size=40))
def test_odd_brackets(text: str) -> None:
    assert _agrees(text.split("&"))


@given(
    among=st.lists(keys, min_size=1, max_size=3),
    places=st.lists(st.integers(0, 2), min_size=90, max_size=130),
    last=keys,
)
def test_lists_over_the_item_limit(among: list[str], places: list[int], last: str) -> None:
    parts = [quote(among[at % len(among)], safe="[]") + "=x" for at in places]
    assert _agrees([*parts, quote(last, safe="[]") + "=y"])


def test_too_deep_levels_become_one_key() -> None:
    for more in ("", "[c]", "[c][d", "[]"):
        assert _agrees(["a=b" + "[b]" * MAX_DEPTH + more + "]=1"])
