"""Path aliases of a front end, such as `~/` for `src/`."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from posixpath import dirname, join, normpath

from server.formats.json import read_json_with_comments
from server.formats.tree import SyntaxProblem, Tree
from server.storage.read import read_text

CONFIGS = ("tsconfig.json", "jsconfig.json")
_MAY_BE_ALIAS = re.compile("[~@]")
_CONVENTIONAL = re.compile("[~@]/")  # These common aliases can also be defined in a front end's code.
_MAX_EXTENDS = 8


class PathAliases:
    """Path aliases that are defined in tsconfig.json or jsconfig.json."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._patterns: Mapping[str, tuple[str, ...]] | None = None

    def candidate_paths(self, target: str) -> tuple[str, ...] | None:
        """Return the paths that a link target can stand for, or None if the target contains no alias.

        The result is empty if the alias is unknown or all paths are outside the site.
        """
        if not _MAY_BE_ALIAS.match(target):
            return None
        if self._patterns is None:
            self._patterns = _read_patterns(self._root)
        pattern = max((one for one in self._patterns if _matches(one, target)), key=_rank, default=None)
        if pattern is None:
            return () if _CONVENTIONAL.match(target) else None
        prefix, _, suffix = pattern.partition("*")
        rest = target[len(prefix) : len(target) - len(suffix)]
        paths = (normpath(to.replace("*", rest, 1)) for to in self._patterns[pattern])
        return tuple(path for path in paths if not path.startswith(("..", "/")))


def _matches(pattern: str, target: str) -> bool:
    prefix, star, suffix = pattern.partition("*")
    if not star:
        return target == pattern
    fits = target.startswith(prefix) and target.endswith(suffix)
    return fits and len(target) >= len(prefix) + len(suffix)


def _rank(pattern: str) -> tuple[bool, int]:
    # As in TypeScript: patterns without an asterisk first, then the longest prefix.
    return "*" not in pattern, len(pattern.partition("*")[0])


def _read_patterns(root: Path) -> Mapping[str, tuple[str, ...]]:
    config = next((name for name in CONFIGS if (root / name).is_file()), None)
    for path, options in _compiler_options(root, config) if config else ():
        paths, base = options.get("paths"), options.get("baseUrl")
        if isinstance(paths, dict):
            folder = join(dirname(path), base if isinstance(base, str) else "")
            return {
                pattern: tuple(join(folder, one) for one in targets if isinstance(one, str))
                for pattern, targets in paths.items()
                if isinstance(targets, list) and _MAY_BE_ALIAS.match(pattern)
            }
    return {}


def _compiler_options(root: Path, path: str) -> Iterator[tuple[str, dict[str, Tree]]]:
    left = [path]
    for _ in range(_MAX_EXTENDS):
        if not left:
            return
        path = left.pop()
        try:
            config = read_json_with_comments(read_text(root, path)[0])
        except (OSError, SyntaxProblem):
            continue
        if not isinstance(config, dict):
            continue
        options, extends = config.get("compilerOptions"), config.get("extends")
        if isinstance(options, dict):
            yield path, options
        # If there are several, the last one takes precedence.
        for one in extends if isinstance(extends, list) else [extends]:
            if isinstance(one, str) and one.startswith("."):
                file = normpath(join(dirname(path), one))
                left.append(file if file.endswith(".json") else f"{file}.json")
