"""Installation of the merge driver, which is needed in each clone."""

import shlex
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from server.config.reader import read_settings
from server.documents.path_rules import ENDINGS, Layout
from server.errors import CommitError, SetupError
from server.formats.regular_files import read_regular_file
from server.schema.load import read_content_types
from server.storage.git.command import git, git_as_owner
from server.storage.git.repository import location
from server.tools.generated_files import delete_file, read_file, replace_file, require_no_link

ATTRIBUTES = ".gitattributes"
NAME, BASE_NAME = "bifolio", "bifolio-base"
_BEGIN = "# bifolio merge-driver: begin. `bifolio merge-driver install` writes these lines."
_END = "# bifolio merge-driver: end"
# These characters have a special meaning in the patterns of .gitattributes.
_SPECIAL = str.maketrans({char: f"\\{char}" for char in "\\*?["})


@dataclass(frozen=True, slots=True)
class InstallResult:
    """The result of installing or removing the driver.

    `attributes` and `config` tell whether .gitattributes and git's config were changed.
    """

    attributes: bool
    config: bool
    patterns: tuple[str, ...] = ()


def install(root: Path) -> InstallResult:
    """Install the driver. Raises SetupError if that fails or the site is not in a git repository."""
    _require_repository(root)
    patterns = tuple(_patterns(root))
    block = [_BEGIN, *(f"{pattern} merge={NAME}" for pattern in patterns), _END]
    changed = _write_block(root, block)
    return InstallResult(changed, _write_config(root, _settings()), patterns)


def uninstall(root: Path) -> InstallResult:
    """Remove the driver. Raises SetupError if that fails or the site is not in a git repository."""
    _require_repository(root)
    attributes = _write_block(root, [])
    return InstallResult(attributes, _remove_config(root))


def is_config_missing(root: Path) -> bool:
    if not _names_driver(root / ATTRIBUTES) or location(root) is None:
        return False
    return not (git(root, "config", f"merge.{NAME}.driver") or "").strip()


def _require_repository(root: Path) -> None:
    if location(root) is None:
        raise SetupError(
            str(root), None, "the folder is not in a git repository", "create one with `git init`"
        )


# --- .gitattributes -------------------------------------------------------------------------------


def _patterns(root: Path) -> Iterator[str]:
    layout = Layout(read_content_types(root), read_settings(root))
    for folder in layout.roots:
        for ending in ENDINGS:
            yield _quoted(f"/{folder.translate(_SPECIAL)}/**/*{ending}" if folder else f"*{ending}")


def _quoted(pattern: str) -> str:
    # Patterns with white space or quotes must be quoted.
    if not any(char in pattern for char in ' \t"'):
        return pattern
    escaped = pattern.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _write_block(root: Path, block: list[str]) -> bool:
    require_no_link(root, ATTRIBUTES)
    before = read_file(root / ATTRIBUTES) or b""
    after = _with_block(before.decode(errors="surrogateescape"), block)
    data = after.encode(errors="surrogateescape")
    if data == before:
        return False
    if data:
        replace_file(root, ATTRIBUTES, data)
    else:
        delete_file(root, ATTRIBUTES)
    return True


def _with_block(text: str, block: list[str]) -> str:
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = text.split(newline)
    new = newline.join(block)
    if _BEGIN in lines and _END in lines[lines.index(_BEGIN) :]:
        start = lines.index(_BEGIN)
        end = lines.index(_END, start) + 1
        between = [new] if block else []
        return newline.join([*lines[:start], *between, *lines[end:]])
    if not block:
        return text
    return text + ("" if not text or text.endswith("\n") else newline) + new + newline


# --- config ---------------------------------------------------------------------------------------


def _settings() -> dict[str, str]:
    # `recursive` names the driver that merges the merge bases if there is more than one.
    return {
        f"merge.{NAME}.name": "merge Bifolio documents attribute by attribute",
        f"merge.{NAME}.driver": _driver(),
        f"merge.{NAME}.recursive": BASE_NAME,
        f"merge.{BASE_NAME}.name": "merge the bases of Bifolio documents",
        f"merge.{BASE_NAME}.driver": _driver("--base"),
    }


def _driver(*options: str) -> str:
    # If Bifolio can't be started, git would keep our side without conflict markers. In this case, merge by
    # line.
    command = " ".join(shlex.quote(word) for word in _command()).replace("%", "%%")
    run = " ".join([command, *options, "--", "%O %A %B %L %P %S %X %Y"])
    lines = "git merge-file -q --marker-size=%L -L ours -L base -L theirs %A %O %B"
    return f"{run} && exit 0; grep -q '^<\\{{%L\\}}' %A && exit 1; {lines} || exit 1"


def _command() -> list[str]:
    # The paths are absolute, because graphical programs often have a different PATH. -P prevents imports
    # from the working tree, and -S saves the time to look for installed packages.
    return [sys.executable, "-S", "-P", str(Path(__file__).with_name("start.py"))]


def _config(root: Path, key: str) -> str | None:
    return git(root, "config", "--local", "--get", key)


def _write_config(root: Path, settings: dict[str, str]) -> bool:
    changed = [(key, value) for key, value in settings.items() if _config(root, key) != f"{value}\n"]
    _change_config(root, (("--replace-all", key, value) for key, value in changed))
    return bool(changed)


def _remove_config(root: Path) -> bool:
    # Another site in the repository might use the driver.
    if _has_other_sites(root):
        return False
    sections = [f"merge.{name}" for name in (NAME, BASE_NAME) if _config(root, f"merge.{name}.driver")]
    _change_config(root, (("--remove-section", section) for section in sections))
    return bool(sections)


def _has_other_sites(root: Path) -> bool:
    top = Path((git(root, "rev-parse", "--show-toplevel") or "").removesuffix("\n"))
    paths = (git(top, "ls-files", "-z") or "").split("\0")
    files = (top / path for path in paths if path.rpartition("/")[2] == ATTRIBUTES)
    return any(_names_driver(path) for path in files)


def _names_driver(path: Path) -> bool:
    try:
        return f"merge={NAME}" in read_regular_file(path).decode(errors="replace")
    except OSError:
        return False


def _change_config(root: Path, changes: Iterable[tuple[str, ...]]) -> None:
    try:
        for arguments in changes:
            git_as_owner(root, "config", "--local", *arguments)
    except CommitError as error:
        raise SetupError(str(root), None, f"the repository's config can't be changed: {error}") from error
