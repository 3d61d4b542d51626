"""The sites for the comparison, by name. A site is defined by its content types."""

import shutil
from pathlib import Path

from bench.differential.random_types import write_random_types
from bench.differential.rules_types import write_rules_types

ROOT = Path(__file__).parents[2]
SITES = {
    "things": ROOT / "tests" / "conformance" / "site" / "content-types",
    "books": ROOT / "tests" / "tools" / "importer" / "site",
}
RULES = "rules"  # a site with every option on every attribute type
RANDOM = "random-"  # prefix of a site's name, which is followed by the seed
DEFAULT = (*SITES, RULES, f"{RANDOM}1")


def make_types(folder: Path, name: str) -> Path:
    """Create the folder `content-types` for a site. Raises SystemExit if the site is unknown."""
    if name.startswith(RANDOM):
        write_random_types(folder, name.removeprefix(RANDOM))
    elif name == RULES:
        write_rules_types(folder)
    elif name in SITES:
        shutil.copytree(SITES[name], folder)
    else:
        raise SystemExit(f"there is no site {name!r}: choose one of {', '.join(SITES)}, {RULES}, {RANDOM}N")
    return folder
