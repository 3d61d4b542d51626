"""The packages of `server/`, lowest first: a module imports from its own package and from those before it.

Modules outside of any package are below all of them; where a package holds others, they are named apart.
"""

import ast
from pathlib import Path

SERVER = Path(__file__).resolve().parent.parent / "server"
PACKAGES = (
    "formats",
    "schema",
    "config",
    "documents",
    "storage",
    "query",
    "auth",
    "index",
    "write",
    "site",
    "search",
    "api",
    "tools",
    "commands",
)


def modules(package: str) -> list[str]:
    """The modules and packages directly in a package (`api.routes`), by name; of "": `server/` itself."""
    folder = SERVER / package.replace(".", "/")
    plain = {path.stem for path in folder.glob("*.py")} - {"__init__", "__main__"}
    inner = {path.parent.name + "/" for path in folder.glob("*/__init__.py")} if package else set()
    return sorted(plain | inner)


def about(package: str) -> str:
    """What a package is for: its docstring."""
    text = (SERVER / package.replace(".", "/") / "__init__.py").read_text(encoding="utf-8")
    return (ast.get_docstring(ast.parse(text)) or "").splitlines()[0]
