"""The packages in `server/`, from the lowest to the highest. A module imports only from the same package and
from packages earlier in this list.

Modules that are not in a package are below all packages. Packages inside other packages are listed
separately.
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
    "jobs",
    "database",
    "query",
    "auth",
    "index",
    "write",
    "site",
    "history",
    "events",
    "search",
    "service",
    "api",
    "lsp",
    "tools",
    "commands",
)


def modules(package: str) -> list[str]:
    """Return the names of the modules and packages that a package directly contains, such as `api.routes`.

    The package "" is `server/` itself.
    """
    folder = SERVER / package.replace(".", "/")
    plain = {path.stem for path in folder.glob("*.py")} - {"__init__", "__main__"}
    inner = {path.parent.name + "/" for path in folder.glob("*/__init__.py")} if package else set()
    return sorted(plain | inner)


def about(package: str) -> str:
    """Return the first line of a package's docstring."""
    text = (SERVER / package.replace(".", "/") / "__init__.py").read_text(encoding="utf-8")
    return (ast.get_docstring(ast.parse(text)) or "").splitlines()[0]


# Modules that are imported only when they are first needed (with `import_module`), and the reasons. All other
# imports are at the top of a module. tests/test_architecture.py checks that this list is complete.
LAZY = {
    "server.commands.*": "Only the called command is loaded, so `bifolio --help` starts fast.",
    "server.search.whoosh_index.reader": "whoosh3 takes 30 ms and 3 MB. Loaded when there is a search index.",
    "server.search.sync": "Indexing takes 13 ms. Loaded only in the process that updates the index.",
    "server.search.stems": "The stemmers for all languages take 12 ms and 2 MB. Loaded by the first search.",
    "server.api.webhooks": "TLS takes 10 ms and 2 MB. Loaded only for a site with webhooks.",
    "server.documents.email": "email-validator takes 13 ms. Loaded to check the first e-mail address.",
    "server.schema.patterns": "regex takes 6 ms and 1 MB. Loaded when a schema contains a pattern.",
    "server.api.app": "Flask and the handlers take 150 ms and 10 MB. Content reads do not need them.",
    "server.api.mcp.fetch": "TLS takes 10 ms and 2 MB. Loaded when an agent uploads a file by its URL.",
    "server.api.mcp.http": "The tools for agents take 1 MB. Loaded only for a site with `mcp.enabled`.",
    "server.auth.directory": "argon2 and PyJWT take 80 ms and 5 MB. Loaded to check tokens or read users.",
    "server.database.postgres": "psycopg is an optional dependency, needed only for accounts in PostgreSQL.",
    "server.formats.markdown": "pyromark takes 15 ms and 5 MB. Loaded to check or render the first text.",
    "server.site.check.users": "argon2 takes 12 ms. Loaded only if a content type can relate to users.",
    "server.storage.images.measure": "Pillow takes 15 ms and 3 MB. Loaded to measure the first new picture.",
    "server.storage.bucket.bucket": "obstore takes 8 MB. Loaded only for a site with a bucket.",
    "server.api.monitoring.metrics": "prometheus_client takes 40 ms. Loaded when metrics are requested.",
    "server.api.limiting.limiter": "limits takes 20 ms. Loaded only for a site with `rate_limit`.",
    "server.api.limiting.sharing": "As above.",
    "server.history.remote.push_before_serving": "Merging takes 20 ms. For `git.push: before`.",
    "server.history.remote.apply_commits": "Merging, as above.",
    "server.history.remote.following": "Merging, as above. Loaded only for a site that follows a git remote.",
    "server.history.remote.push_after_serving": "Merging, as above. Loaded only for a site with `git.push`.",
}
