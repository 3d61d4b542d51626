"""Checks of many cases in one test that reports all failures. Thousands of separate tests would
run longer.
"""

import traceback
from collections.abc import Callable, Iterable

import pytest


def require_all(check: Callable[..., None], cases: Iterable[tuple[object, ...]]) -> None:
    """Run the check for all cases, whose items are its arguments. Fail with all cases that raise
    AssertionError.
    """
    failed, count = [], 0
    for case in cases:
        count += 1
        try:
            check(*case)
        except AssertionError:
            failed.append(f"{case}\n{traceback.format_exc()}")
    assert count, "there are no cases"
    if failed:
        pytest.fail(f"{len(failed)} of {count} cases failed\n\n" + "\n\n".join(failed), pytrace=False)
