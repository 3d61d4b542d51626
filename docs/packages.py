"""The packages of `server/`, lowest first. A module imports only from its own package and from earlier ones.

Modules outside any package are below all packages. If a package contains other packages, these are listed
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
    "tools",
    "commands",
)


def modules(package: str) -> list[str]:
    """Return the names of the modules and packages directly in a package (`api.routes`).

    "" is `server/` itself.
    """
    folder = SERVER / package.replace(".", "/")
    plain = {path.stem for path in folder.glob("*.py")} - {"__init__", "__main__"}
    inner = {path.parent.name + "/" for path in folder.glob("*/__init__.py")} if package else set()
    return sorted(plain | inner)


def about(package: str) -> str:
    """Return the first line of a package's docstring."""
    text = (SERVER / package.replace(".", "/") / "__init__.py").read_text(encoding="utf-8")
    return (ast.get_docstring(ast.parse(text)) or "").splitlines()[0]


# Modules that are imported on first use (`import_module`), and why. All other imports are at the top of their
# modules. tests/test_architecture.py checks that this list is complete.
LAZY = {
    "server.commands.*": "Each is loaded when it is called, so that `bifolio --help` answers at once.",
    "server.search.whoosh_index.reader": "whoosh3 takes 30 ms and 3 MB, until there is an index.",
    "server.search.sync": "The texts and words of search take 13 ms, which one process alone needs.",
    "server.search.stems": "The stemmers of all languages take 12 ms and 2 MB, until a word is looked for.",
    "server.api.webhooks": "TLS takes 10 ms and 2 MB, which only a site with webhooks needs.",
    "server.documents.email": "email-validator takes 13 ms, until an e-mail address is checked.",
    "server.schema.patterns": "regex takes 6 ms and 1 MB, until a schema has a pattern.",
    "server.api.app": "Flask and the handlers take 150 ms and 10 MB; reads of content need neither.",
    "server.auth.directory": "argon2 and PyJWT take 80 ms and 5 MB, until credentials or users are needed.",
    "server.database.postgres": "psycopg is installed only where accounts are to be in PostgreSQL.",
    "server.site.check.users": "argon2 takes 12 ms, which only content that can relate to users needs.",
    "server.storage.images.measure": "Pillow takes 15 ms and 3 MB, until there is a picture not seen before.",
    "server.storage.bucket.bucket": "obstore takes 8 MB, which only a site with a bucket needs.",
    "server.api.monitoring.metrics": "prometheus_client takes 40 ms, until somebody asks for metrics.",
    "server.api.limiting.limiter": "limits takes 20 ms, which only a site with `rate_limit` needs.",
    "server.api.limiting.sharing": "limits, as above.",
    "server.history.remote.arbiter": "Merging takes 20 ms and argon2; only git.push: before writes by it.",
    "server.history.remote.takeover": "Merging, as above.",
    "server.history.remote.following": "Merging takes 20 ms and argon2, where a git remote is followed.",
    "server.history.remote.background_push": "The same, where writes are pushed to one.",
}
