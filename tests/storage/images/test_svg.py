"""The width and height of SVG drawings: units, view boxes, and malicious files."""

import time
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.storage.images.svg import MAX_HEAD_BYTES, svg_size

NS = 'xmlns="http://www.w3.org/2000/svg"'


def size_of(folder: Path, text: str | bytes) -> tuple[int, int] | None:
    path = folder / "drawing.svg"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    with path.open("rb") as file:
        return svg_size(file)


@pytest.mark.parametrize(
    ("attributes", "size"),
    [
        ('width="50" height="70"', (50, 70)),
        ('width="50.4px" height="70.5px"', (50, 71)),
        ('width="1in" height="2pc"', (72, 24)),
        ('width="10mm" height="1cm"', (28, 28)),
        ('viewBox="0 0 30.5 20"', (31, 20)),
        ('viewBox="0,0,30,20" width="100%" height="100%"', (30, 20)),
        ('viewBox="0 0 30 20" width="60"', (60, 40)),
        ('viewBox="0 0 30 20" height="60"', (90, 60)),
        ('width="60"', None),
        ('width="0" height="5"', None),
        ('width="-5" height="5"', None),
        ('width="100000" height="5"', None),
        ('viewBox="0 0 0 20"', None),
        ('viewBox="0 0 nan inf"', None),
        ("", None),
    ],
)
def test_lengths(tmp_path: Path, attributes: str, size: tuple[int, int] | None) -> None:
    assert size_of(tmp_path, f"<?xml version='1.0'?><!-- Tide --><svg {NS} {attributes}><g/></svg>") == size


def test_what_is_no_drawing_has_no_size(tmp_path: Path) -> None:
    for text in (
        "",
        "no markup",
        "<html width='1' height='2'/>",
        "<svg width='1' height='2'",
        b"\xff\xfe\x00",
    ):
        assert size_of(tmp_path, text) is None


def test_the_entities_of_drawing_programs_are_read(tmp_path: Path) -> None:
    text = (
        '<!DOCTYPE svg [<!ENTITY ns "http://www.w3.org/2000/svg">]><svg xmlns="&ns;" width="9" height="7"/>'
    )
    assert size_of(tmp_path, text) == (9, 7)


def test_bombs_do_no_harm(tmp_path: Path) -> None:
    nested = "".join(f'<!ENTITY e{n + 1} "{f"&e{n};" * 20}">' for n in range(20))
    bombs = [
        f'<!DOCTYPE svg [<!ENTITY e0 "{"9" * 100}">{nested}]><svg width="&e20;" height="7"/>',
        f'<!DOCTYPE svg [<!ENTITY e "{"9" * 20_000}">]><svg width="{"&e;" * 10_000}" height="7"/>',
        '<!DOCTYPE svg [<!ENTITY e SYSTEM "file:///etc/passwd">]><svg width="&e;" height="7"/>',
        f'<!DOCTYPE svg [<!ENTITY % p "x">{"%p;" * 1000}]><svg width="5" height="7"/>',
        f"<svg {'<g>' * 100_000}",
        f"{' ' * MAX_HEAD_BYTES}<svg width='5' height='7'/>",
    ]
    began = time.monotonic()
    tracemalloc.start()
    assert [size_of(tmp_path, bomb) for bomb in bombs] == [None, None, None, (5, 7), None, None]
    assert tracemalloc.get_traced_memory()[1] < 16 * 1024 * 1024
    tracemalloc.stop()
    assert time.monotonic() - began < 5


@given(st.binary(max_size=400))
def test_no_bytes_are_too_much(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    folder = tmp_path_factory.mktemp("svg")
    size = size_of(folder, b"<svg width='5' " + content)
    assert size is None or min(size) > 0
