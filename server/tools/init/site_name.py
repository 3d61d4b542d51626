"""Choice of a name for a new site."""

import re
from collections.abc import Callable, Iterable
from pathlib import Path

from server.formats.json import read_json
from server.formats.regular_files import read_regular_file
from server.formats.toml.reader import read_toml
from server.formats.tree import SyntaxProblem, Tree
from server.formats.yaml.reader import read_yaml

_SCRIPT = re.compile(r"""^[^/\n]*?\b(?:title|SITE_TITLE)['"]?\s*[:=]\s*(['"`])(.+?)\1""", re.M)
_SCRIPT_DATA = re.compile(r"""^[^/\n]*?\b(?:title|siteName|name)['"]?\s*[:=]\s*(['"`])(.+?)\1""", re.M)
_YAML_LINE = re.compile(
    r"""^(?:title|site_name):[ \t]*(["']?)([^\s#\[{&*!|>][^#\n]*?)\1[ \t]*(?:#.*)?$""", re.M
)
_HEADING = re.compile(r"^(?:#[ \t]+(?P<atx>.+?)[ \t#]*|(?P<setext>[^\n]+)\n=+[ \t]*)$", re.M)
_MARKUP = re.compile(
    r"\[?!\[[^\]]*\](?:\([^)]*\)|\[[^\]]*\])\]?(?:\([^)]*\)|\[[^\]]*\])?|<[^>]*>|:\w+:|[*`]|\\(?=\W)"
)
_LINK = re.compile(r"\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])")
_MAX_HEADING_CHARS = 40  # Longer headings are probably sentences.


def choose_site_name(root: Path, projects: Iterable[str] = ()) -> str:
    below = sorted(set(projects) - {""})
    found = _in_settings(root)
    if found is None and len(below) == 1:
        found = _in_settings(root / below[0])
    return found or _name_from_readme(root) or _of_folder(root.resolve().name) or "Bifolio"


def _in_data(tree: Tree) -> str | None:
    if not isinstance(tree, dict):
        return None
    found = [tree.get(key) for key in ("title", "site_name", "name")]
    # Hugo's settings can contain `languages`, and mdBook's contain `book`.
    languages = tree.get("languages")
    parts = [*(languages.values() if isinstance(languages, dict) else ()), tree.get("book")]
    found.extend(part.get("title") for part in parts if isinstance(part, dict))
    return next((str(value) for value in found if isinstance(value, str) and value.strip()), None)


def _in_toml(text: str) -> str | None:
    return _in_data(read_toml(text))


def _in_json(text: str) -> str | None:
    return _in_data(read_json(text))


def _in_yaml(text: str) -> str | None:
    try:
        return _in_data(read_yaml(text))
    except SyntaxProblem:  # MkDocs files can contain tags such as `!ENV`, which the YAML parser rejects.
        return _match(_YAML_LINE, text)


def _in_script(text: str) -> str | None:
    return _match(_SCRIPT, text)


def _in_script_data(text: str) -> str | None:
    return _match(_SCRIPT_DATA, text)


def _match(pattern: re.Pattern[str], text: str) -> str | None:
    found = pattern.search(text)
    return found[2] if found and "${" not in found[2] else None


_ELEVENTY_DATA = [f"{base}_data/{name}" for base in ("", "src/") for name in ("metadata", "site", "meta")]

# settings in this order: Hugo, Zola, mdBook, Jekyll, MkDocs, Docusaurus, VitePress, Astro; then Eleventy's
# data
_READERS: tuple[tuple[str, Callable[[str], str | None]], ...] = (
    ("hugo.toml config.toml zola.toml config/_default/hugo.toml config/_default/config.toml", _in_toml),
    ("config/_default/languages.en.toml book.toml", _in_toml),
    ("hugo.yaml hugo.yml config.yaml config.yml _config.yml mkdocs.yml mkdocs.yaml", _in_yaml),
    ("config/_default/hugo.yaml config/_default/config.yaml", _in_yaml),
    (" ".join(["hugo.json config.json", *(f"{data}.json" for data in _ELEVENTY_DATA)]), _in_json),
    (" ".join(f"{data}.{ending}" for data in _ELEVENTY_DATA for ending in ("yaml", "yml")), _in_yaml),
    ("docusaurus.config.js docusaurus.config.ts docusaurus.config.mjs", _in_script),
    (".vitepress/config.mts .vitepress/config.ts .vitepress/config.js", _in_script),
    ("docs/.vitepress/config.mts docs/.vitepress/config.ts docs/.vitepress/config.js", _in_script),
    ("src/consts.ts src/consts.js src/config.ts src/config.js", _in_script),
    ("astro.config.mjs astro.config.ts astro.config.js", _in_script),
    (" ".join(f"{d}.{e}" for d in _ELEVENTY_DATA for e in ("js", "cjs", "mjs")), _in_script_data),
)


def _in_settings(root: Path) -> str | None:
    for names, read in _READERS:
        for name in names.split():
            try:
                found = read(read_regular_file(root / name).decode("utf-8-sig"))
            except (OSError, UnicodeDecodeError, SyntaxProblem):
                continue
            if found and found.strip():
                return found.strip()
    return None


def _name_from_readme(root: Path) -> str | None:
    try:
        heading = _HEADING.search(read_regular_file(root / "README.md").decode("utf-8-sig"))
    except (OSError, UnicodeDecodeError):
        return None
    if heading is None:
        return None
    text = _LINK.sub(r"\1", _MARKUP.sub("", heading["atx"] or heading["setext"])).strip()
    plain = 0 < len(text) <= _MAX_HEADING_CHARS and any(map(str.isalpha, text))
    return text if plain and text.lower() not in ("readme", "getting started") else None


def _of_folder(name: str) -> str:
    # A domain name, such as `blog.example.org`, is not changed.
    if "." in name:
        return name
    words = re.split(r"[-_\s]+", name)
    return " ".join(word[0].upper() + word[1:] if word.islower() else word for word in words if word)
