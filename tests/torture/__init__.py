"""The tests for robustness, repeated with other random seeds: `make torture`."""

import os

# The random seed for a test, and whether to run the longer variant of the test.
SEED = int(os.environ.get("BIFOLIO_SEED", "0"))
LONG = bool(SEED)
