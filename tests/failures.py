"""One test of many cases, which tells of all that fail: thousands of tests take longer to run and to read."""

import traceback
from collections.abc import Callable, Iterable

import pytest


def require_all(check: Callable[..., None], cases: Iterable[tuple[object, ...]]) -> None:
    """Check all cases, each given as arguments. Fails with every case whose check raises AssertionError."""
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
