"""`python -m tests.soak`: run the soak test."""

import argparse
import secrets
import sys

from tests.signals import restore_in_children
from tests.soak.run import soak


def main() -> int:
    """Run the soak and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(2**31))
    parser.add_argument("--scene", action="append", choices=("one", "three"))
    parser.add_argument("--fault", action="append", help="only these")
    options = parser.parse_args()
    restore_in_children()
    print(f"seed {options.seed}", flush=True)
    return soak(options.seconds, options.seed, options.scene or ("one", "three"), options.fault)


if __name__ == "__main__":
    sys.exit(main())
