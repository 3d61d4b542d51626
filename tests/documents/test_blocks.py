"""Tests of blocks in request bodies: each node is validated by the rules for its type."""

from typing import Any

import pytest

from server.documents.blocks import find_block_errors

TEXT = {"type": "text", "text": "x"}
LINK = {"type": "link", "url": "https://example.org", "children": [TEXT]}
ITEM = {"type": "list-item", "children": [TEXT, LINK]}


def paths(*blocks: Any) -> list[str]:
    return [".".join(map(str, path)) for path, _ in find_block_errors(list(blocks), ())]


@pytest.mark.parametrize(
    "block",
    [
        {"type": "paragraph", "children": [TEXT, LINK]},
        {"type": "paragraph", "children": [{"type": "text", "text": "", "bold": True, "own": 1}], "own": 1},
        {"type": "heading", "level": 6, "children": [TEXT]},
        {"type": "heading", "level": "2", "children": [TEXT]},
        {"type": "quote", "children": [TEXT]},
        {"type": "code", "language": None, "children": [TEXT]},
        {"type": "list", "format": "ordered", "children": [ITEM]},
        {
            "type": "list",
            "format": "unordered",
            "children": [{"type": "list", "format": "ordered", "children": [ITEM]}],
        },
        {"type": "paragraph", "children": [{**LINK, "url": "/tides"}]},
    ],
)
def test_blocks_that_are_good(block: Any) -> None:
    assert paths(block) == []


@pytest.mark.parametrize(
    ("block", "path"),
    [
        (5, "0"),
        ({"type": "song", "children": []}, "0"),
        ({"type": "text", "text": "x"}, "0"),
        ({"type": "paragraph"}, "0.children"),
        ({"type": "paragraph", "children": []}, "0.children"),
        ({"type": "paragraph", "children": [{"type": "text"}]}, "0.children.0.text"),
        ({"type": "paragraph", "children": [{**TEXT, "bold": "yes"}]}, "0.children.0.bold"),
        ({"type": "paragraph", "children": [ITEM]}, "0.children.0"),
        ({"type": "heading", "children": [TEXT]}, "0.level"),
        ({"type": "heading", "level": 12, "children": [TEXT]}, "0.level"),
        ({"type": "list", "format": "ordered", "children": [TEXT]}, "0.children.0"),
        ({"type": "list", "format": "round", "children": [ITEM]}, "0.format"),
        ({"type": "paragraph", "children": [{**LINK, "url": "nowhere"}]}, "0.children.0.url"),
        ({"type": "paragraph", "children": [{**LINK, "url": "javascript:alert(1)"}]}, "0.children.0.url"),
        ({"type": "paragraph", "children": [{**LINK, "url": "http://[x"}]}, "0.children.0.url"),
        ({"type": "code", "children": [LINK]}, "0.children.0"),
    ],
)
def test_what_is_wrong_with_blocks_is_told_by_its_path(block: Any, path: str) -> None:
    assert paths(block) == [path]


def test_an_image_holds_what_the_library_says_of_its_file() -> None:
    image = {
        **dict.fromkeys(("name", "url", "hash", "ext", "mime", "provider", "createdAt", "updatedAt"), "x"),
        **dict.fromkeys(("width", "height", "size"), 1),
    }
    block = {"type": "image", "image": image, "children": [{"type": "text", "text": ""}]}
    assert paths(block) == []
    assert paths({**block, "image": {**image, "url": ""}}) == ["0.image.url"]
    assert len(paths({**block, "image": None})) == 11
