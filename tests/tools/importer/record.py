"""`python -m tests.tools.importer.record`: record the responses of Strapi with which Bifolio's are compared.

This needs Node.js with npm. It installs Strapi (see bench/peer), creates a project with the content types in
site/, creates content over Strapi's API, sends the REQUESTS, exports the project, and writes export.tar.gz,
answers.json and remote.json to this file's folder.
"""

import json
import os
import shutil
import sqlite3
import subprocess
import tempfile
from pathlib import Path
from urllib.parse import quote

from bench.peer.install import install_strapi, node
from bench.peer.strapi import command, make_project, strapi, surroundings, token
from server.tools.importer.importing import ImportOptions, import_source
from server.tools.importer.readers.remote import Remote
from tests.tools.importer.asked import IDS, REQUESTS
from tests.tools.importer.content import LOCALES, Api, fill
from tests.tools.importer.replay import JSON, Answer, serving

HERE = Path(__file__).parent


def main() -> None:
    """Record everything."""
    if not node():
        raise SystemExit("there is no Node.js with npm on this machine")
    packages = install_strapi()
    project = packages / "projects" / "record"
    shutil.rmtree(project, ignore_errors=True)
    make_project(project, HERE / "site")
    with strapi(packages, project, LOCALES) as serving:
        fill(Api(serving.port, token(project)))
    _point_anywhere(project / "data.db")
    with strapi(packages, project, LOCALES) as serving_it:
        api = Api(serving_it.port, token(project))
        _write("answers.json", _ask(api))
        _write("remote.json", _overhear(api))
    subprocess.run(
        command(packages, "export", "--no-encrypt", "--file", "export"),
        cwd=project,
        env={**os.environ, **surroundings()},
        check=True,
        stdout=subprocess.DEVNULL,
    )
    shutil.copyfile(project / "export.tar.gz", HERE / "export.tar.gz")
    for name in ("answers.json", "remote.json", "export.tar.gz"):
        print(f"{name}: {(HERE / name).stat().st_size:,} bytes")


def _point_anywhere(database: Path) -> None:
    """Let a remark have a target of any type. Strapi's API can't write such a relation (it responds with
    500).
    """
    with sqlite3.connect(database) as connection:
        connection.execute(
            "UPDATE remarks SET target_id = 1, target_type = 'api::writer.writer' WHERE id = 2"
        )


def _ask(api: Api) -> list[dict[str, object]]:
    """Send every request, and return the status and body of each response."""
    ids = {}
    for name, path in IDS.items():
        found = json.loads(api.ask("GET", quote(path, safe="/?&=[]$%:"))[1])["data"]
        ids[name] = found[0]["documentId"]
    answers = []
    for request in REQUESTS:
        path = request.format(**ids)
        status, body = api.ask("GET", quote(path, safe="/?&=[]$%:"))
        answers.append({"path": path, "status": status, "body": json.loads(body)})
    return answers


def _overhear(api: Api) -> dict[str, object]:
    """Import by URL, and return the responses to the import's requests. Files are left out, because the
    archive contains them.
    """
    heard: dict[str, object] = {}

    def ask(path: str, _: str) -> Answer:
        status, body = api.ask("GET", path)
        if status == 200 and path.startswith("/api/"):
            heard[path] = json.loads(body)
        return status, JSON, body

    with serving(ask) as address, tempfile.TemporaryDirectory() as folder:
        import_source(Path(folder), Remote(address, "any"), ImportOptions(), lambda *_: None)
    return heard


def _write(name: str, value: object) -> None:
    """Write a JSON file with one line for each member, so that changes in a new recording are easy to
    review.
    """
    many = list(value.items()) if isinstance(value, dict) else list(value) if isinstance(value, list) else []
    lines = ",\n".join(
        f"{json.dumps(item[0])}: {_compact(item[1])}" if isinstance(value, dict) else _compact(item)
        for item in many
    )
    left, right = "{}" if isinstance(value, dict) else "[]"
    (HERE / name).write_text(f"{left}\n{lines}\n{right}\n", encoding="utf-8")


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


if __name__ == "__main__":
    main()
