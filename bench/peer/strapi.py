"""Runner of a Strapi project that has Bifolio's content types."""

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.peer.install import APP, node
from bench.serving import Serving, free_port, running

_FACTORIES = {"controllers": "Controller", "routes": "Router", "services": "Service"}


def make_project(folder: Path, types: Path) -> None:
    """Write a Strapi project to `folder`, with the content types in `types`."""
    shutil.copytree(APP, folder)
    (folder / "public" / "uploads").mkdir(parents=True)
    (folder / "favicon.png").touch()
    for path in sorted(types.glob("*.json")):
        schema = json.loads(path.read_bytes())
        info = schema["info"]
        schema.setdefault("collectionName", info["pluralName"].replace("-", "_"))
        schema.setdefault("options", {})
        _add_type(folder / "src" / "api" / info["singularName"], info["singularName"], schema)
    for path in sorted((types / "components").glob("*/*.json")):
        schema = json.loads(path.read_bytes())
        schema.setdefault("collectionName", f"components_{path.parent.name}_{path.stem}".replace("-", "_"))
        schema.setdefault("info", {"displayName": path.stem})
        _write_json(folder / "src" / "components" / path.parent.name / path.name, schema)


def _add_type(folder: Path, name: str, schema: dict[str, Any]) -> None:
    _write_json(folder / "content-types" / name / "schema.json", schema)
    for place, factory in _FACTORIES.items():
        (folder / place).mkdir()
        made = f"factories.createCore{factory}('api::{name}.{name}')"
        (folder / place / f"{name}.js").write_text(f"module.exports = require('@strapi/strapi').{made};\n")


def _write_json(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2) + "\n")


def command(packages: Path, *arguments: str) -> list[str]:
    return [node() or "node", str(packages / "node_modules/@strapi/strapi/bin/strapi.js"), *arguments]


def surroundings(port: int = 0, locales: Sequence[str] = ()) -> dict[str, str]:
    """Return environment variables with which Strapi's commands run in production mode and without
    telemetry.
    """
    return {
        "NODE_ENV": "production",
        "PORT": str(port),
        "LOCALES": ",".join(locales),
        "STRAPI_TELEMETRY_DISABLED": "true",
        "STRAPI_DISABLE_UPDATE_NOTIFICATION": "true",
    }


@contextmanager
def strapi(
    packages: Path, folder: Path, locales: Sequence[str] = (), environment: Mapping[str, str] | None = None
) -> Iterator[Serving]:
    """Context manager: run a Strapi project, which must be inside Strapi's folder."""
    port = free_port()
    variables = {**surroundings(port, locales), **(environment or {})}
    with running(command(packages, "start"), port, variables, folder) as serving:
        yield serving


def token(folder: Path) -> str:
    return (folder / "token.txt").read_text().strip()
