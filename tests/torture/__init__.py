"""The hard tests, repeated with other random seeds: `make torture`."""

import os

# The random seed of a test, and whether to run the longer variant.
SEED = int(os.environ.get("BIFOLIO_SEED", "0"))
LONG = bool(SEED)
