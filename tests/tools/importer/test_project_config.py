"""Reading the settings in config/api of Strapi projects."""

from pathlib import Path

import pytest

from server.config.reader import read_settings
from server.errors import SetupError
from server.tools.importer.importing import ImportOptions, import_source
from server.tools.importer.project_config import read_project
from server.tools.importer.readers.archive import Archive
from server.tools.importer.report import report
from tests.tools.importer.archives import EXPORT

TYPESCRIPT = """import type { Core } from '@strapi/strapi';
// strictParams: false
const config: Core.Config.Api = {
  rest: {
    prefix: '/api', // see https://example.org/rest: {a}
    defaultLimit: 30,
    maxLimit: env.int('MAX_LIMIT', 200),
    withCount: true,
    strictParams: true,
  },
  documents: { strictParams: false, strictRelations: true },
};
export default config;
"""
JAVASCRIPT = "module.exports = ({ env }) => ({ rest: { 'strictParams': false, maxLimit: 500 } });\n"
JSON = '{"responses": {}, "rest": {"defaultLimit": 10, "maxLimit": 50}}'


def project(folder: Path, name: str, text: str) -> Path:
    (folder / "config").mkdir(parents=True)
    (folder / "config" / name).write_text(text)
    return folder


@pytest.mark.parametrize(
    ("name", "text", "api", "unread"),
    [
        (
            "api.ts",
            TYPESCRIPT,
            {"page_size": {"default": 30}, "strict_params": True},
            ("rest.maxLimit: env.int('MAX_LIMIT'",),
        ),
        ("api.js", JAVASCRIPT, {"strict_params": False, "page_size": {"max": 500}}, ()),
        ("api.json", JSON, {"page_size": {"default": 10, "max": 50}}, ()),
        ("api.js", "module.exports = {}", {}, ()),
    ],
)
def test_settings_that_a_project_writes_out_are_read(
    tmp_path: Path, name: str, text: str, api: object, unread: tuple[str, ...]
) -> None:
    found = read_project(project(tmp_path, name, text))
    assert found.to_nested_mapping() == api
    assert found.unreadable == unread


def test_a_folder_without_the_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"does not contain config/api\.ts or config/api\.js"):
        read_project(tmp_path)


def test_a_new_site_gets_the_settings_and_another_is_told_of_them(tmp_path: Path) -> None:
    there = read_project(project(tmp_path / "strapi", "api.js", JAVASCRIPT))
    for name in ("new", "old"):
        (tmp_path / name).mkdir()
    (tmp_path / "old" / "site.yaml").write_text("name: Old\n")
    options = ImportOptions(project=there)
    lines = {
        name: "\n".join(
            report(import_source(tmp_path / name, Archive(EXPORT), options, lambda *_: None), dry_run=False)
        )
        for name in ("new", "old")
    }
    assert read_settings(tmp_path / "new").api.page_size.max == 500
    assert "Settings of the project" not in lines["new"]
    assert "  api:\n    strict_params: false\n    page_size:\n      max: 500" in lines["old"]
