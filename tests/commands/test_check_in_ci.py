"""The workflows in deploy/ci and the hooks for pre-commit: their commands are run in a clone."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.git import commit_all, git
from tests.site.check.sites import SETTINGS, TYPES, page
from tests.sites import write

ROOT = Path(__file__).parents[2]
SITE = {
    **TYPES,
    "site.yaml": SETTINGS,
    "content/pages/a.md": page("# A"),
    "content/pages/old.md": page("[x](y.md)"),
}


def clone(folder: Path, files: Mapping[str, str]) -> Path:
    """Return a clone with the branch `topic`, on which the given files have been changed."""
    origin, here = folder / "origin", folder / "clone"
    write(origin, SITE)
    commit_all(origin)
    git(folder, "clone", "-q", str(origin), str(here))
    git(here, "checkout", "-q", "-b", "topic")
    write(here, files)
    git(here, "add", "-A")
    git(here, "commit", "-q", "--allow-empty", "-m", "topic")
    return here


def run(folder: Path, commands: list[str], **variables: str) -> "subprocess.CompletedProcess[str]":
    """Run commands as a runner does. `bifolio` is this code, and `pip` does nothing."""
    programs = folder.parent / "programs"
    programs.mkdir(exist_ok=True)
    for name, does in (("bifolio", f'exec "{sys.executable}" -m server "$@"'), ("pip", "exit 0")):
        (programs / name).write_text(f"#!/bin/sh\n{does}\n")
        (programs / name).chmod(0o755)
    environment = {
        **os.environ,
        **variables,
        "PYTHONPATH": str(ROOT),
        "PATH": f"{programs}:{os.environ['PATH']}",
    }
    script = "\n".join(["set -e", *commands])
    return subprocess.run(
        ["sh", "-c", script], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def steps(event: str) -> list[str]:
    """Return the commands of the GitHub workflow for an event."""
    workflow: Any = yaml.safe_load((ROOT / "deploy/ci/github.yaml").read_text())
    job = workflow["jobs"]["check"]
    assert job["steps"][0]["with"] == {"fetch-depth": 0}
    wanted = [step for step in job["steps"] if f"'{event}'" in step.get("if", f"'{event}'")]
    return [step["run"] for step in wanted if "run" in step]


def test_github_shows_what_a_pull_request_causes(tmp_path: Path) -> None:
    sound = clone(tmp_path / "sound", {"content/pages/b.md": page("[a](a.md)")})
    done = run(sound, steps("pull_request"), GITHUB_BASE_REF="main")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    broken = clone(tmp_path / "broken", {"content/pages/b.md": page("[a](c.md)")})
    done = run(broken, steps("pull_request"), GITHUB_BASE_REF="main")
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        "::warning file=content/pages/b.md,line=5,col=5,title=bifolio%3A broken-link::the link leads to "
        "content/pages/c.md, which does not exist. Correct the link, or add the file."
    ]
    done = run(broken, steps("push"))
    assert done.returncode == 0
    assert [line.partition(",")[0] for line in done.stdout.splitlines()] == [
        "::warning file=content/pages/b.md",
        "::warning file=content/pages/old.md",
    ]


def test_gitlab_gets_a_report_for_a_merge_request(tmp_path: Path) -> None:
    job: Any = yaml.safe_load((ROOT / "deploy/ci/gitlab.yaml").read_text())["check"]
    files = {"content/pages/b.md": page("[a](c.md) [b](c.md)\n[a](c.md)"), "content/pages/d.md": "---\na"}
    here = clone(tmp_path, files)
    done = run(here, job["script"], CI_MERGE_REQUEST_TARGET_BRANCH_NAME="main")
    assert (done.returncode, done.stderr) == (1, "")
    report = json.loads((here / job["artifacts"]["reports"]["codequality"]).read_text())
    assert [(one["location"], one["severity"], one["check_name"]) for one in report] == [
        ({"path": "content/pages/b.md", "lines": {"begin": 5}}, "minor", "broken-link"),
        ({"path": "content/pages/b.md", "lines": {"begin": 6}}, "minor", "broken-link"),
        ({"path": "content/pages/d.md", "lines": {"begin": 1}}, "major", "syntax"),
    ]
    assert len({one["fingerprint"] for one in report}) == 3
    assert all(re.fullmatch(r"[0-9a-f]{32}", one["fingerprint"]) for one in report)
    assert report[0]["description"].startswith("the link leads to content/pages/c.md, which does not exist. ")


@pytest.mark.parametrize("name", ["bifolio-check", "bifolio-check-changed"])
def test_a_hook_rejects_a_commit_with_a_broken_link(tmp_path: Path, name: str) -> None:
    hooks = {hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())}
    assert hooks[name]["pass_filenames"] is False
    here = clone(tmp_path, {"content/pages/b.md": page("[a](a.md)")})
    (here / "content/pages/old.md").write_text(page("[x](a.md)"))
    git(here, "commit", "-aqm", "mend")
    hook = here / ".git/hooks/pre-commit"
    hook.write_text(f"#!/bin/sh\nexec {hooks[name]['entry']} --strict\n")
    hook.chmod(0o755)
    commit = "git add -A && git -c user.name=T -c user.email=t@example.org commit -qm change"
    write(here, {"content/pages/c.md": page("[a](c.md) [b](a.md)")})
    assert run(here, [commit]).returncode == 0
    write(here, {"content/pages/c.md": page("[a](d.md)")})
    done = run(here, [commit])
    assert done.returncode == 1
    assert "content/pages/d.md, which does not exist" in done.stdout + done.stderr
