"""`python -m docs` checks README.md and docs/*.md against the code, and `--write` updates the pages.

Tables are generated from the code (docs/tables.py). Every command in a ```console block is run in a copy of
the repository's site, and its output is compared with the output on the page (docs/examples.py).
"""

import argparse
import difflib
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from docs.examples import make_formats, with_answers
from docs.forks import forking
from docs.tables import with_tables
from tests.signals import restore_in_children

ROOT = Path(__file__).resolve().parent.parent
# Several pages are processed at once, because half of the time is spent waiting until a site has loaded a
# change.
PAGES_AT_ONCE = 4


def main() -> int:
    """Check or rewrite the pages. When checking, return the exit status 1 if a page is outdated."""
    parser = argparse.ArgumentParser(prog="python -m docs", description=__doc__)
    parser.add_argument("pages", nargs="*", type=Path, help="only these pages")
    parser.add_argument("--write", action="store_true", help="rewrite outdated pages")
    options = parser.parse_args()
    pages = options.pages or [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    restore_in_children()
    with TemporaryDirectory(prefix="bifolio-docs-") as name, forking(folder := Path(name)):
        look = partial(_look, formats=make_formats(ROOT, folder), write=options.write)
        pool = ThreadPoolExecutor(PAGES_AT_ONCE)
        told = list(pool.map(look, pages))
    return 1 if any(told) and not options.write else 0


def _look(page: Path, formats: Path, *, write: bool) -> bool:
    """Check or rewrite a page. Return whether the page was outdated."""
    text = page.read_text(encoding="utf-8")
    true = with_answers(ROOT, with_tables(text), formats)
    if true == text:
        return False
    if write:
        page.write_text(true, encoding="utf-8")
        print(f"{page.name}: rewritten")
    else:
        names = (f"{page.name}, current", f"{page.name}, expected")
        print("\n".join(difflib.unified_diff(text.splitlines(), true.splitlines(), *names, lineterm="")))
    return True


if __name__ == "__main__":
    sys.exit(main())
