"""Numbers of examples in property tests: a few fixed ones in CI, random ones locally, and the most in torture
tests.
"""

import os

from hypothesis import settings

from tests.ci import IN_CI
from tests.torture import LONG

PROFILE = os.environ.get("BIFOLIO_EXAMPLES") or ("torture" if LONG else "ci" if IN_CI else "laptop")
PERCENT = {"ci": 25, "laptop": 50, "torture": 1000}[PROFILE]


def examples(count: int) -> int:
    """Return how many examples a test tries in this profile. `count` is the number at 100 percent."""
    return max(5, count * PERCENT // 100)


def load_profile() -> None:
    """Make hypothesis use the profile. There is no deadline, because a busy machine must not fail a test."""
    fixed = {"derandomize": True, "database": None} if PROFILE == "ci" else {}
    settings.register_profile(PROFILE, deadline=None, max_examples=examples(100), **fixed)
    settings.load_profile(PROFILE)
