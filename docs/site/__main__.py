"""`python -m docs.site` serves docs/ with Bifolio, and a front page on the next port.

`docs/` is a site, with `docs/site.yaml`. Each page is a document of the type `docs/content-types/page.json`.
"""

import argparse
import subprocess
import sys
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

DOCS = Path(__file__).resolve().parent.parent
# Path prefixes of the front page, and the folders that contain their files.
FOLDERS = {
    "vendor": DOCS.parent / "server" / "api" / "studio" / "page" / "vendor",
    "figures": DOCS / "figures",
    "": DOCS / "site",
}
TYPES = {".html", ".js", ".svg"}


class Handler(SimpleHTTPRequestHandler):
    """Server for the front page, and for the studio's bundle that renders Markdown."""

    def translate_path(self, path: str) -> str:
        """Return the file for a path; a file that does not exist if the path is unknown."""
        folder, _, name = path.partition("?")[0].removeprefix("/").rpartition("/")
        file = FOLDERS[folder] / (name or "index.html") if folder in FOLDERS else None
        return str(file if file and file.suffix in TYPES else DOCS / "site" / "missing")

    def log_message(self, *_: Any) -> None:
        """Log nothing: the terminal shows the server's output."""


def front(port: int) -> ThreadingHTTPServer:
    """Serve the front page in a thread."""
    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    return server


def main() -> int:
    """Serve until Ctrl-C."""
    parser = argparse.ArgumentParser(prog="python -m docs.site", description=__doc__)
    parser.add_argument(
        "--port", type=int, default=1337, help="the API's port; the front page has the next one"
    )
    port = parser.parse_args().port
    server = front(port + 1)
    print(f"Front page: http://127.0.0.1:{port + 1}/", flush=True)
    with subprocess.Popen(
        [sys.executable, "-m", "server", "serve", "--site", str(DOCS), "--port", str(port)]
    ) as serving:
        try:
            return serving.wait()
        except KeyboardInterrupt:  # The server receives the signal too and ends.
            return serving.wait()
        finally:
            server.shutdown()


if __name__ == "__main__":
    sys.exit(main())
