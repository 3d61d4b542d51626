"""The docs name everything that the tables of the code have (docs/tables.py makes their tables)."""

from pathlib import Path

import pytest

from server.ask import PUBLICATION_FILTERS
from server.operators import LOGIC, OPERATORS
from server.problems import RULES
from server.schema import ATTRIBUTE_TYPES
from server.settings import KEYS

DOCS = Path(__file__).parent.parent / "docs"
NAMED = {
    "querying.md": [*OPERATORS, *LOGIC, *PUBLICATION_FILTERS],
    "settings.md": list(KEYS),
    "modelling.md": list(ATTRIBUTE_TYPES),
    "check.md": list(RULES),
}


@pytest.mark.parametrize("page", NAMED)
def test_a_page_names_everything(page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    assert [name for name in NAMED[page] if f"`{name}`" not in text] == []
