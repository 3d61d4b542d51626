"""Limits of numbers (server/documents/constraints.py)."""

from dataclasses import replace

import pytest

from server.documents.constraints import option_errors
from server.schema.model import Attribute

PRICE = Attribute("price", "float")


@pytest.mark.parametrize("limit", [0.1, 0.3, 1.1, 2.675])
def test_a_float_that_equals_its_limit_is_valid(limit: float) -> None:
    """As binary fractions, 0.3 is less than three tenths, and 0.1 is more than a tenth."""
    attribute = replace(PRICE, min=limit, max=limit)
    assert [*option_errors(attribute, limit)] == []
    assert [*option_errors(attribute, limit - 0.001)] == [f"must be greater than or equal to {limit}"]
    assert [*option_errors(attribute, limit + 0.001)] == [f"must be less than or equal to {limit}"]
