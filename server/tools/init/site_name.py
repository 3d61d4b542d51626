"""The name of a site, as the settings of its generator say it."""

import re
from collections.abc import Callable
from pathlib import Path

from server.formats.json import read_json
from server.formats.toml.reader import read_toml
from server.formats.tree import SyntaxProblem, Tree
from server.formats.yaml.reader import read_yaml

_SCRIPT = re.compile(r"""^[^/\n]*?\b(?:title|SITE_TITLE)['"]?\s*[:=]\s*(['"`])(.+?)\1""", re.M)
_YAML_LINE = re.compile(
    r"""^(?:title|site_name):[ \t]*(["']?)([^\s#\[{&*!|>][^#\n]*?)\1[ \t]*(?:#.*)?$""", re.M
)


def _in_data(tree: Tree) -> str | None:
    """The name in settings that are data; None where they say none."""
    found = [tree.get(key) for key in ("title", "site_name", "name")] if isinstance(tree, dict) else []
    return next((str(value) for value in found if isinstance(value, str) and value.strip()), None)


def _in_toml(text: str) -> str | None:
    return _in_data(read_toml(text))


def _in_json(text: str) -> str | None:
    return _in_data(read_json(text))


def _in_yaml(text: str) -> str | None:
    try:
        return _in_data(read_yaml(text))
    except SyntaxProblem:  # MkDocs has tags of its own: `!!python/name:…`, `!ENV`.
        return _in(_YAML_LINE, text)


def _in_script(text: str) -> str | None:
    return _in(_SCRIPT, text)


def _in(pattern: re.Pattern[str], text: str) -> str | None:
    found = pattern.search(text)
    return found[2] if found and "${" not in found[2] else None


# The files to look into, the first that says a name counts: settings of Hugo, Zola, Jekyll, MkDocs,
# Docusaurus, VitePress and Astro, and data of Eleventy.
_READERS: tuple[tuple[str, Callable[[str], str | None]], ...] = (
    ("hugo.toml config.toml zola.toml config/_default/hugo.toml config/_default/config.toml", _in_toml),
    ("hugo.yaml hugo.yml config.yaml config.yml _config.yml mkdocs.yml mkdocs.yaml", _in_yaml),
    ("config/_default/hugo.yaml config/_default/config.yaml", _in_yaml),
    ("hugo.json config.json _data/metadata.json _data/site.json", _in_json),
    ("src/_data/metadata.json src/_data/site.json", _in_json),
    ("docusaurus.config.js docusaurus.config.ts docusaurus.config.mjs", _in_script),
    (".vitepress/config.mts .vitepress/config.ts .vitepress/config.js", _in_script),
    ("docs/.vitepress/config.mts docs/.vitepress/config.ts docs/.vitepress/config.js", _in_script),
    ("src/consts.ts src/consts.js astro.config.mjs astro.config.ts astro.config.js", _in_script),
    ("_data/metadata.js _data/site.js", _in_script),
)


def site_name(root: Path) -> str | None:
    """The name that the settings of a generator at `root` give the site; None where they give none."""
    for names, read in _READERS:
        for name in names.split():
            try:
                found = read((root / name).read_text(encoding="utf-8-sig"))
            except (OSError, UnicodeDecodeError, SyntaxProblem):
                continue
            if found and found.strip():
                return found.strip()
    return None
