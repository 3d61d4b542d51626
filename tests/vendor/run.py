"""`make test-vendor`: bundle the studio's libraries again, and check that the result is the same as in the
repository.
"""

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
    """Bundle the libraries and compare them with the repository. Return 0 if they are identical, byte for
    byte.
    """
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
