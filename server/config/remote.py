"""The part of the `git` section of site.yaml that is about a remote, which several machines share."""

import re
from datetime import timedelta

from server.config.values import duration, text
from server.formats.config_file import ConfigFile

BEFORE, AFTER = "before", "after"  # what git.push can be, beside ""
_REMOTE = re.compile(r"[A-Za-z0-9][\w.-]{0,99}", re.ASCII)
# What `git check-ref-format` takes for a branch, as far as one character can tell.
_BRANCH = re.compile(r"(?![-./])[^\x00-\x20\x7f~^:?*\[\\]{1,200}")
_NO_BRANCH = re.compile(r"\.\.|//|/\.|@\{|\.lock(/|$)|[./]$")


def remote(file: ConfigFile, default: str, *at: str) -> str:
    """The name of a git remote. Its address, with the credentials for it, each machine's git knows."""
    name = text(file, default, *at)
    if name and not _REMOTE.fullmatch(name):
        raise file.refuse("git.remote must be the name of a remote", "write one that `git remote` lists", *at)
    return name


def branch(file: ConfigFile, default: str, *at: str) -> str:
    """The name of a branch, without `refs/heads/`."""
    name = text(file, default, *at)
    if name and (not _BRANCH.fullmatch(name) or _NO_BRANCH.search(name)):
        raise file.refuse(f'"{name}" can\'t be the name of a branch', "write it as main", *at)
    return name


def follow(file: ConfigFile, default: timedelta | None, *at: str) -> timedelta | None:
    """How often a remote is asked; None for `off`."""
    return default if text(file, "off", *at) == "off" else duration(file, timedelta(), *at)


def push(file: ConfigFile, default: str, *at: str) -> str:
    """When a remote gets a write: `before` or `after` it is answered; "" for `off`."""
    word = text(file, default, *at)
    if word not in ("", "off", BEFORE, AFTER):
        raise file.refuse(f'git.push is "{word}"', "use before, after or off", *at)
    return "" if word == "off" else word
