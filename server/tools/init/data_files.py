"""Data files that can be served as documents."""

import os
import re
from collections import Counter
from collections.abc import Iterable

from server.documents.path_rules import ENDINGS, MARKDOWN

DATA_BASES = ("data", "src/data")
# data folders of Hugo, Jekyll and Eleventy
_GENERATOR_FOLDERS = ("data", "_data", "src/data", "src/_data")
_DATA = tuple(ending for ending in ENDINGS if ending not in MARKDOWN)
# matches the names of settings files for programs in the root folder
_PROGRAMS = re.compile(
    r"(.*[._-])?(lock|schema|config|conf|rc|workspace)([._-].*)?|[jt]sconfig.*|package|composer|manifest|cargo|"
    r"pyproject|book|netlify|vercel|renovate|lerna|turbo|nx|deno|(docker-)?compose.*|openapi|swagger|mkdocs|"
    r"hugo|zola|codecov|site"
)


def data_documents(files: Iterable[str]) -> set[str]:
    """Return the data files that can be served as documents.

    These are the files in a data folder such as `data/`. If there is no such folder, they are the files in
    folders that contain mostly data files.
    """
    paths = [path for path in files if not _describes(path)]
    data = {path for path in paths if path.endswith(_DATA) and not _is_setting(path)}
    for base in DATA_BASES:
        if inside := {path for path in data if path.startswith(f"{base}/")}:
            return inside
    all_files, data_files = Counter(map(_top, paths)), Counter(map(_top, data))
    taken = {folder for folder, number in data_files.items() if folder and number * 2 > all_files[folder]}
    if not taken and all_files.keys() == {""} and len(data) > 1 and len(data) == all_files[""]:
        taken = {""}
    return {path for path in data if _top(path) in taken}


def generator_data_folder(path: str) -> str:
    if not path.endswith(_DATA):
        return ""
    return next((folder for folder in _GENERATOR_FOLDERS if path.startswith(f"{folder}/")), "")


def _top(path: str) -> str:
    return path.partition("/")[0] if "/" in path else ""


def _is_setting(path: str) -> bool:
    return "/" not in path and bool(_PROGRAMS.fullmatch(os.path.splitext(path)[0].lower()))


def _describes(path: str) -> bool:
    name = os.path.basename(path)
    return path.endswith(MARKDOWN) or name.split(".")[0].lower() in (
        "license",
        "licence",
        "notice",
        "copying",
    )
