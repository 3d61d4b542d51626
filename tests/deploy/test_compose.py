"""Tests of deploy/: everything that compose.yaml, example.env, site.yaml and the Dockerfile name
must exist.
"""

import re
import shutil
import subprocess
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import pytest
import yaml

from server.auth.session_key import MIN_KEY_CHARS
from server.commands.serve import serve_command
from server.config.reader import read_settings

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
SERVICES: dict[str, Any] = COMPOSE["services"]
MACHINES = ("one", "two", "three")
DOCKERFILE = (ROOT / "Dockerfile").read_text()


def test_every_variable_is_in_the_example_or_has_a_default() -> None:
    text = (DEPLOY / "compose.yaml").read_text()
    asked = set(re.findall(r"\$\{(\w+):\?", text))
    optional = set(re.findall(r"\$\{(\w+):-", text))
    given = dict(re.findall(r"^#?(\w+)=(.*)$", (DEPLOY / "example.env").read_text(), re.M))
    assert asked | optional == set(given)
    # The example is public, so it must not contain secrets.
    assert {name: given[name] for name in asked} == dict.fromkeys(asked, "")


@pytest.mark.skipif(not shutil.which("openssl"), reason="openssl is not installed")
def test_the_commands_in_the_documentation_make_every_secret(tmp_path: Path) -> None:
    asked = set(re.findall(r"\$\{(\w+):\?", (DEPLOY / "compose.yaml").read_text()))
    page = (ROOT / "docs/machines.md").read_text()
    (command,) = re.findall(r"^.*openssl rand.*> \.env\)$", page, re.M)
    subprocess.run(["sh", "-c", command], check=True, cwd=tmp_path)
    made = dict(line.split("=") for line in (tmp_path / ".env").read_text().splitlines())
    assert made.keys() == asked
    assert min(map(len, made.values())) >= MIN_KEY_CHARS
    assert len(set(made.values())) == len(asked)
    assert (tmp_path / ".env").stat().st_mode & 0o077 == 0


def test_images_of_others_have_a_version() -> None:
    others = {name: service["image"] for name, service in SERVICES.items() if "build" not in service}
    assert [name for name, image in others.items() if not re.search(r":v?\d", image)] == []


def test_what_bifolio_is_told_in_the_environment_it_reads() -> None:
    source = "\n".join(path.read_text() for path in (ROOT / "server").rglob("*.py"))
    names = {name for machine in MACHINES for name in SERVICES[machine]["environment"]}
    assert [name for name in names if name.startswith("BIFOLIO_") and f'"{name}"' not in source] == []


def test_the_settings_are_those_of_this_bifolio_and_of_these_services() -> None:
    settings = read_settings(DEPLOY)
    assert (settings.git.remote, settings.git.branch) == ("origin", "main")
    assert settings.accounts == "postgresql://bifolio@database/bifolio"
    assert (settings.media.store, settings.media.endpoint) == ("s3://media", "http://bucket:7070")
    assert SERVICES["bucket"]["environment"]["VGW_PORT"] == ":7070"
    # The server treats each folder as a bucket.
    assert SERVICES["bucket"]["volumes"] == ["bucket:/data/media"]
    assert "database" in SERVICES
    assert settings.api.trusted_proxies == (COMPOSE["networks"]["default"]["ipam"]["config"][0]["subnet"],)


def test_a_machine_that_is_made_anew_is_where_nginx_looks_for_it() -> None:
    addresses = {SERVICES[name]["networks"]["default"]["ipv4_address"] for name in MACHINES}
    assert len(addresses) == len(MACHINES)
    (pool,) = COMPOSE["networks"]["default"]["ipam"]["config"]
    for address in map(ip_address, addresses):
        assert address in ip_network(pool["subnet"])
        # the range from which other containers get their addresses
        assert address not in ip_network(pool["ip_range"])


@pytest.mark.parametrize("name", [*MACHINES, "remote"])
def test_what_runs_our_image_may_write_its_volume_and_temporary_files_alone(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"]
    assert service["cap_drop"] == ["ALL"]
    assert service["tmpfs"] == ["/tmp"]
    writable = [volume for volume in service["volumes"] if not volume.endswith(":ro")]
    assert writable == [f"{name}:/site"]


def test_volumes_and_files_are_there() -> None:
    mounted = [volume.split(":")[0] for service in SERVICES.values() for volume in service["volumes"]]
    files = {name for name in mounted if name.startswith("./")}
    assert [name for name in files if not (DEPLOY / name).is_file()] == []
    assert set(mounted) - files == set(COMPOSE["volumes"])


def test_what_is_waited_for_has_a_healthcheck() -> None:
    for service in SERVICES.values():
        needed = service.get("depends_on", {})
        conditions = needed.items() if isinstance(needed, dict) else ()
        for name, wanted in conditions:
            assert wanted["condition"] != "service_healthy" or "healthcheck" in SERVICES[name]


@pytest.mark.parametrize("script", ["machine.sh", "remote.sh"])
def test_the_shell_takes_the_scripts(script: str) -> None:
    subprocess.run(["sh", "-n", str(DEPLOY / script)], check=True)


def test_the_container_runs_commands_that_there_are() -> None:
    options = {name for option in serve_command.params for name in option.opts}
    script = (DEPLOY / "machine.sh").read_text()
    told = re.findall(r"--[a-z-]+", script.partition("bifolio serve")[2]) + re.findall(r"--host", DOCKERFILE)
    assert set(told) <= options
    assert "/_health/live" in DOCKERFILE


def test_secrets_stay_out_of_git_and_of_images() -> None:
    assert "/deploy/.env" in (ROOT / ".gitignore").read_text().split()
    assert "**/.env" in (ROOT / ".dockerignore").read_text().split()
