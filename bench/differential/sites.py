"""The sites that both servers are asked about, by name: their content types."""

import shutil
from pathlib import Path

ROOT = Path(__file__).parents[2]
SITES = {
    "things": ROOT / "tests" / "conformance" / "site" / "content-types",
    "books": ROOT / "tests" / "tools" / "importer" / "site",
}


def make_types(folder: Path, name: str) -> Path:
    """A folder `content-types` of a site."""
    shutil.copytree(SITES[name], folder)
    return folder
