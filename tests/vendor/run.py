"""`make test-vendor`: bundles the studio's libraries again, which gives what the repository has."""

import filecmp
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.ci import skipped
from tests.clients.npm import install, missing_node
from tests.servers import ROOT

FOLDER = ROOT / "vendor"
BUNDLED = ROOT / "server/api/studio/page/vendor"


def main() -> int:
    """Bundle and compare; 0 where both are the same to the byte."""
    if (reason := missing_node() or install(FOLDER)) is not None:
        return skipped("test-vendor", reason)
    with tempfile.TemporaryDirectory(prefix="bifolio-vendor-") as folder:
        subprocess.run(["node", "bundle.mjs", folder], cwd=FOLDER, check=True)
        names = {path.name for place in (Path(folder), BUNDLED) for path in place.iterdir()}
        same, *others = filecmp.cmpfiles(folder, BUNDLED, names, shallow=False)
    different = sorted(name for found in others for name in found)
    print(f"{len(same)} files are what `make vendor` makes; others: {', '.join(different) or 'none'}")
    return int(bool(different))


if __name__ == "__main__":
    sys.exit(main())
