"""Licences of all packages in an installation: Python packages, and the npm packages in the studio."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_HERE = Path(__file__).resolve().parent
_MANIFEST = _HERE.parent / "server/api/studio/page/vendor/manifest.json"
# The SPDX name of the licence for each package (docs/licences.tsv).
LICENCES = dict(line.split("\t") for line in (_HERE / "licences.tsv").read_text().splitlines())


@dataclass(frozen=True)
class BundledPackage:
    """An npm package that `make vendor` has bundled into one of the studio's files."""

    file: str
    name: str
    version: str
    licence: str


def bundled_packages() -> Iterator[BundledPackage]:
    """Yield the npm packages in all bundles, with their exact versions."""
    for file, bundle in json.loads(_MANIFEST.read_text()).items():
        for package in bundle["packages"]:
            yield BundledPackage(file, package["name"], package["version"], package["licence"])
