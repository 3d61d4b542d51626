"""Unicode normalization of long and hostile texts."""

import unicodedata

from server.documents.ids import to_nfc
from server.formats.normal_form import normalize
from server.formats.prose import normalize_anchor
from tests.growth import is_linear

MARKS = "\u0301\u0323"  # acute, dot below: not in their canonical order


def test_texts_are_normalized() -> None:
    for text in ("e\u0301", "a" + MARKS, "x" + MARKS * 60, "\ufb01", "\uac00", "abc"):
        assert normalize("NFC", text) == unicodedata.normalize("NFC", text)
        assert normalize("NFKD", text) == unicodedata.normalize("NFKD", text)


def test_many_marks_take_linear_time() -> None:
    assert is_linear(lambda size: normalize("NFC", "a" + MARKS * size), 1000)
    assert is_linear(lambda size: normalize("NFKD", ("a" + MARKS * 99) * size), 10)
    assert is_linear(lambda size: to_nfc("a" + MARKS * size), 1000)
    assert is_linear(lambda size: normalize_anchor("a" + MARKS * size), 1000)
