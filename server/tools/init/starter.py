"""Schemas, settings and first documents of a new site."""

import json
import os
import re
import shlex
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from server.config.model import FILE
from server.documents.timestamps import now
from server.errors import SetupError
from server.formats.yaml.writer import yaml_entry
from server.storage.git.command import DEFAULT_TIMEOUT_S, git_if_possible
from server.tools.init.propose import settings_text

_EXAMPLES: Mapping[str, str] = {
    "content/home.md": """---
headline: {name}
---

This text comes from `content/home.md`. Edit that file, and `/api/home` returns the new text.
""",
    "content/authors/ada.yaml": """name: Ada Example
slug: ada
bio: Writes the first article of every new site.
""",
    "content/articles/welcome.md": """---
title: Welcome
slug: welcome
summary: The first article, and the file that contains it.
publishedOn: {today}
author: ada
---

This article is the file `content/articles/welcome.md`. The file name without `.md` is its `documentId`. Its
attributes are between the two lines of dashes, and `content-types/article.json` defines them.

- To add an article, create another file in this folder. `/api/articles` then includes it.
- To write a draft, name the file `NAME.draft.md`. Only readers with the permission `readDraft` can see it.
- To find mistakes in your files, run `bifolio check`.
""",
}


def starter_files(name: str, locales: tuple[str, ...], *, example: bool) -> Mapping[str, str]:
    """Return the files of a new site by path. The first locale is the default locale."""
    localized = len(locales) > 1
    files = {f"content-types/{key}.json": _json(schema) for key, schema in _types(localized).items()}
    files[FILE] = settings_text(name, locales, ("article", "author", "home", "upload"))
    if example:
        heading = yaml_entry("headline", name).removeprefix("headline: ").rstrip("\n")
        for path, text in _EXAMPLES.items():
            files[path] = text.replace("{name}", heading).replace("{today}", now()[:10])
    return files


def _types(localized: bool) -> Mapping[str, Mapping[str, Any]]:
    own = {"pluginOptions": {"i18n": {"localized": True}}} if localized else {}
    article: dict[str, dict[str, Any]] = {
        "title": {"type": "string", "required": True, **own},
        "slug": {"type": "uid", "targetField": "title", **own},
        "summary": {"type": "text", **own},
        "publishedOn": {"type": "date"},
        "author": {"type": "relation", "relation": "manyToOne", "target": "api::author.author"},
        "body": {"type": "richtext", **own},
    }
    author = {"name": {"type": "string", "required": True}, "slug": {"type": "uid"}, "bio": {"type": "text"}}
    article["author"]["inversedBy"] = "articles"
    author["articles"] = {
        "type": "relation",
        "relation": "oneToMany",
        "target": "api::article.article",
        "mappedBy": "author",
    }
    home = {"headline": {"type": "string", "required": True, **own}, "body": {"type": "richtext", **own}}
    return {
        "article": _type("article", "articles", article, own, drafts=True),
        "author": _type("author", "authors", author, {}, format="yaml"),
        "home": _type("home", "homes", home, own, kind="singleType"),
    }


def _type(
    singular: str,
    plural: str,
    attributes: Mapping[str, Any],
    localized: Mapping[str, Any],
    *,
    kind: str = "collectionType",
    drafts: bool = False,
    **options: str,
) -> Mapping[str, Any]:
    return {
        "kind": kind,
        "info": {"singularName": singular, "pluralName": plural, "displayName": singular.title()},
        "options": {"draftAndPublish": drafts, **options},
        "pluginOptions": localized.get("pluginOptions", {}),
        "attributes": attributes,
    }


def _json(schema: Mapping[str, Any]) -> str:
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


# --- deployment -----------------------------------------------------------------------------------

COMPOSE = "compose.yaml"
WORKFLOW = ".github/workflows/content.yaml"

_PACKAGE = Path(__file__).parents[2]
_REMOTE = re.compile(r"(https?|ssh)://\S+")
_SCP_ADDRESS = re.compile(r"(?P<user>[\w.-]+@)(?P<host>[\w.-]+):(?P<path>[^/\s]\S*)")
_COMPOSE_TEXT = """\
# `docker compose up` serves this folder at http://127.0.0.1:1337/. Edited files are served without a restart.
services:
  bifolio:
    image: bifolio
    {build}    user: "{owner}"  # the owner of this folder, so that Bifolio can write to it
    ports: ["127.0.0.1:1337:1337"]
    volumes: [".:/site"]
    restart: unless-stopped
"""
_WORKFLOW_TEXT = """\
# Checks the content on every push and pull request. Problems are shown next to their lines.
name: content
on: [push, pull_request]
permissions: {{contents: read}}
jobs:
  check:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
        with: {{fetch-depth: 0}}  # git history provides missing timestamps
      - uses: actions/setup-python@v5
        with: {{python-version: "3.12"}}
      - run: pip install "bifolio @ git+{repository}"
      - run: bifolio check{site} --format github
"""


def compose_file(folder: Path, repository: str | None) -> Mapping[str, str]:
    """Return the path and text of a Docker Compose file that builds Bifolio from `repository`.

    If `repository` is None, the source of this installation is used. Raises SetupError if that is unknown.
    """
    source = repository_url(repository) or _clone()
    if source is None:
        raise _unknown()
    return {COMPOSE: _COMPOSE_TEXT.format(build=yaml_entry("build", source), owner=_owner(folder))}


def workflow_file(folder: Path, repository: str | None) -> Mapping[str, str]:
    """Return the path (relative to the site) and text of a GitHub workflow that checks the site.

    Raises SetupError if Bifolio's repository is unknown.
    """
    address = repository_url(repository)
    if address is None:
        raise _unknown()
    here = Path(os.path.realpath(folder))
    output = git_if_possible(_existing(here), "rev-parse", "--show-toplevel", seconds=DEFAULT_TIMEOUT_S)
    top = Path(output.strip()) if output else here
    site = "" if here == top else f" --site {shlex.quote(here.relative_to(top).as_posix())}"
    path = Path(os.path.relpath(top / WORKFLOW, here)).as_posix()
    return {path: _WORKFLOW_TEXT.format(repository=address, site=site)}


def repository_url(url: str | None) -> str | None:
    """Return `url` after checking it.

    If `url` is None, return the URL of the repository from which Bifolio was installed, or None if that is
    unknown. Raises SetupError if `url` is invalid.
    """
    if url is not None:
        address = _remote_url(url)
        if address is None:
            raise SetupError(
                "--from", None, f'"{url}" is not the URL of a git repository', "use a URL such as https://…"
            )
        return address
    if _clone() is None:
        return _installed_from()
    printed = git_if_possible(_PACKAGE.parent, "remote", "get-url", "origin", seconds=DEFAULT_TIMEOUT_S)
    return _remote_url(printed or "")


def _installed_from() -> str | None:
    try:
        direct_url = json.loads(distribution("bifolio").read_text("direct_url.json") or "{}")
    except PackageNotFoundError:
        return None
    return _remote_url(str(direct_url["url"])) if "vcs_info" in direct_url else None


def _remote_url(url: str) -> str | None:
    short = _SCP_ADDRESS.fullmatch(url.strip())
    text = f"ssh://{short['user']}{short['host']}/{short['path']}" if short else url.strip()
    return text if _REMOTE.fullmatch(text) else None


def _clone() -> str | None:
    root = _PACKAGE.parent
    return str(root) if (root / "Dockerfile").is_file() and (root / ".git").exists() else None


def _existing(folder: Path) -> Path:
    return next(path for path in (folder, *folder.parents) if path.is_dir())


def _owner(folder: Path) -> str:
    found = _existing(Path(os.path.realpath(folder))).stat()
    return f"{found.st_uid}:{found.st_gid}"


def _unknown() -> SetupError:
    message = "can't determine which git repository Bifolio was installed from"
    return SetupError("--from", None, message, "pass the URL of Bifolio's git repository: --from https://…")
