"""URL patterns match the same addresses as regular expressions, but in linear time."""

import re
from dataclasses import replace
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from server.documents.path_rules import Layout
from server.site.check.address_patterns import AddressPattern, LiteralPart, Part, PlaceholderPart
from server.site.check.page_addresses import PageAddresses
from tests.growth import is_linear
from tests.sites import STRING, collection, opened, write

# Each part with a regular expression that has the same meaning.
PARTS: dict[str, Part] = {
    r"[^/]+": PlaceholderPart(re.compile("/")),
    r".+": PlaceholderPart(re.compile("\n")),
    r"\d+": PlaceholderPart(re.compile(r"\D")),
    r"(?:a|ab|b)": LiteralPart(("a", "ab", "b")),
    r"(?:-|a1)": LiteralPart(("-", "a1")),
    r"-": LiteralPart(("-",)),
    r"/": LiteralPart(("/",)),
    r"aa": LiteralPart(("aa",)),
}


@settings(max_examples=500)
@given(st.lists(st.sampled_from(sorted(PARTS)), max_size=6), st.text("ab-/1\n", max_size=14))
def test_a_pattern_matches_as_a_regular_expression_does(parts: list[str], path: str) -> None:
    named = [replace(PARTS[part], name=f"g{i}") for i, part in enumerate(parts)]
    found = re.fullmatch("".join(f"(?P<g{i}>{part})" for i, part in enumerate(parts)), path)
    assert AddressPattern(tuple(named)).match(path) == (found.groupdict() if found else None)


def test_many_placeholders_take_linear_time() -> None:
    run, dash = PARTS[r"[^/]+"], PARTS["-"]
    pattern = AddressPattern((LiteralPart(("/",)), run, dash, run, dash, run, dash, run))
    assert is_linear(lambda size: pattern.match("/" + "a-" * size + "/"), 200)
    assert is_linear(lambda size: pattern.match("/" + "a-" * size + "a"), 200)


def test_a_link_is_compared_with_ambiguous_patterns_in_linear_time(tmp_path: Path) -> None:
    types = collection("article", {"day": {"type": "date"}, "slug": STRING})
    url = "urls: {article: 'https://example.org/{day.year}/{slug}-{documentId}'}\n"
    write(
        tmp_path, {**types, "site.yaml": url, "content/articles/a.md": "---\nday: 2024-01-02\nslug: b\n---\n"}
    )
    state = opened(tmp_path).state
    addresses = PageAddresses(state.snapshot, state.settings, Layout(state.schema, state.settings))
    document = addresses.document_at("/2024/b-a")
    assert document is not None
    assert document.document_id == "a"
    assert is_linear(lambda size: list(addresses.find_matches("/2024/" + "a-" * size + "/index")), 120)
    assert list(addresses.find_matches("/2024/a-" + "a" * 100_000)) == []
