"""The hard tests, again and again with other numbers: `make torture`."""

import os

# What the random numbers of a test begin with, and whether it is to take longer than usual.
SEED = int(os.environ.get("BIFOLIO_SEED", "0"))
LONG = bool(SEED)
