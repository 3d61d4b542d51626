"""Runs the commands in a page's ```console blocks, and compares their output with the page.

A ```bash block is run as a whole: it has no prompts and prints nothing, so readers can paste it. Readers can
also paste a ```console block, so the commands in a block run without pauses. If a command must wait for the
effect of a previous command, the block itself contains the wait. Between two blocks, there is a pause of one
second, because readers also need time, and the server must load changed files.

The commands on a page run in one shell, in order, in a copy of the repository's site. The copy is a separate
git repository, and a server serves it. If `bifolio serve` in an example runs in the foreground, it is stopped
as soon as it is ready to serve requests. If it runs in the background, it runs until the end of the page. A
page with `<!-- in an empty folder -->` starts in an empty folder without a server.

After each pause, the tool also waits until the page's servers are idle (docs/settled.py), because one second
is not enough on a busy machine.
"""

import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path

from docs.forks import COMMAND
from docs.settled import processes_in
from tests.example_site import copy_derived, copy_site, write_search_index
from tests.servers import free_port

PORT, OTHER = "1337", "1338"  # the site's port, and one for other servers in examples
_BLOCK = re.compile(r"^```(console|bash)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_MARK = "\x01"
MAX_PAGE_S = 240
_EMPTY = "<!-- in an empty folder -->"
_BACKGROUND = re.compile(r"^bifolio serve(.*&)$")
_KEY = re.compile(r"(?<=studio\?key=)\S+")  # This key gives access to the studio.
# Output that is different in each run. A page is not rewritten if only such output differs.
_VARIES = re.compile(
    r"bifolio_[0-9a-f]{64}|eyJ[\w-]+\.[\w-]+\.[\w-]+|\bq[0-9a-z]{23}\b|_[0-9a-f]{10}\b|\b\d{12,}\b"
    r"|msg_[\w-]{24}|whsec_[\w+/=]+|\"seconds\": [\d.]+"
    r"|\d{4}-\d\d-\d\d(?:[T ][\d:.]+Z?| )|\d+\.\d+ s|\(\d+ ms\)|\b[0-9a-f]{7,64}\b"
)
_BIFOLIO = shlex.join(COMMAND)
_SETTLED = shlex.join((sys.executable, "-I", "-S", str(Path(__file__).with_name("settled.py"))))
# Pauses of less than a second, as in loops, do not wait for the servers.
_PRELUDE = r"""
trap 'kill $(jobs -p) 2> /dev/null; wait' EXIT
sleep() {
  command sleep "$@"
  case $1 in .*|0*) ;; *) @SETTLED "$PAGE" ;; esac
}
bifolio() {
  if [ "$1" != serve ]; then @BIFOLIO "$@"; return; fi
  local out=$(mktemp)
  @BIFOLIO serve --workers 1 --port "$SPARE" "${@:2}" > "$out" 2>&1 &
  until grep -q 'Ctrl-C' "$out" || ! kill -0 $! 2> /dev/null; do sleep 0.05; done
  kill $! 2> /dev/null
  wait $!
  cat "$out"
  rm "$out"
}
""".replace("@BIFOLIO", _BIFOLIO).replace("@SETTLED", _SETTLED)
_READS = ("curl", "cat", "git diff")  # These commands change no files; all other commands may change files.
_BETWEEN_BLOCKS = "sleep 1"


def make_formats(root: Path, folder: Path) -> Path:
    """Generate the resized variants (`formats`) of the site's pictures, and the search index. The copies of
    the site for all pages use these files.
    """
    _copy_site(root, folder / "site", None)
    command = [*COMMAND, "export", "--site", str(folder / "site"), str(folder / "exported")]
    subprocess.run(command, env={**os.environ, "PYTHONPATH": str(root)}, check=True, capture_output=True)
    write_search_index(folder / "site")
    return folder / "site/.bifolio"


def with_answers(root: Path, page: str, formats: Path) -> str:
    """Return the page with the current output of its commands. If only variable parts of the output differ,
    return the page unchanged.
    """
    blocks = [_commands_of(found) for found in _BLOCK.finditer(page)]
    if not blocks:
        return page
    commands = [[command for command, _ in block] for block in blocks]
    answers = [_KEY.sub("…", answer) for answer in _run(root, commands, None if _EMPTY in page else formats)]
    told = [told for block in blocks for _, told in block]
    if [_steady(text) for text in told] == [_steady(text) for text in answers]:
        return page
    left = iter(answers)

    def rewritten(found: re.Match[str]) -> str:
        if found[1] == "bash":
            if printed := next(left):
                raise SystemExit(f"a block that should print nothing printed\n{printed}{found[0]}")
            return found[0]
        lines = [f"$ {command}\n{next(left)}" for command, _ in _commands(found[2])]
        return "```console\n" + "".join(lines) + "```"

    return _BLOCK.sub(rewritten, page)


def _commands_of(block: re.Match[str]) -> list[tuple[str, str]]:
    """Return the commands in the block that a regular expression matched, each with its output."""
    return [(block[2].rstrip("\n"), "")] if block[1] == "bash" else _commands(block[2])


def _commands(block: str) -> list[tuple[str, str]]:
    r"""Return the commands in a block, each with the output below it. A line that ends in \ continues on the
    next line.
    """
    found: list[tuple[str, str]] = []
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        lines = part.splitlines(keepends=True)
        end = 1
        while lines[end - 1].rstrip().endswith("\\"):
            end += 1
        heredoc = re.search(r"<<\s*'?(\w+)'?", lines[0])
        if heredoc:
            end = 1 + next(i for i, line in enumerate(lines) if line.strip() == heredoc[1])
        found.append(("".join(lines[:end]).rstrip("\n"), "".join(lines[end:])))
    return found


def _steady(text: str) -> str:
    return _VARIES.sub("…", text).strip()


def _run(root: Path, blocks: list[list[str]], formats: Path | None) -> list[str]:
    with tempfile.TemporaryDirectory(prefix="bifolio-docs-") as folder:
        folder = os.path.realpath(folder)
        site = Path(folder, "site")
        shutil.copy(root / "tests" / "tools" / "importer" / "export.tar.gz", folder)  # for docs/import.md
        with _served(root, site, formats) if formats else _nothing(site) as port:
            ports = {PORT: port, OTHER: str(free_port())}
            environment = {**_environment(), "SPARE": str(free_port()), "PAGE": folder}
            with subprocess.Popen(
                ["bash", "-c", _script(blocks, ports)],
                cwd=site,
                env={**environment, "PYTHONPATH": str(root)},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            ) as shell:
                printed, ended = _output_of(shell, folder)
            if not ended:
                command = list(chain(*blocks))[printed.count(_MARK)]
                raise SystemExit(f"still waiting after {MAX_PAGE_S} s: {command}")
        text = printed.replace(environment["SPARE"], PORT).replace(folder, "/srv")
        for shown, real in ports.items():
            text = text.replace(real, shown)
    answers = [part.strip("\n") for part in text.split(_MARK)[:-1]]
    return [answer + "\n" if answer else "" for answer in answers]


def _output_of(shell: subprocess.Popen[str], folder: str) -> tuple[str, bool]:
    """Return the output of a page's shell, and whether the shell ended before the timeout.

    After a timeout, the page's processes are killed.
    """
    try:
        return shell.communicate(timeout=MAX_PAGE_S)[0], True
    except subprocess.TimeoutExpired:
        for process in processes_in(folder):
            with suppress(ProcessLookupError):  # The process has already ended.
                os.kill(int(process), signal.SIGTERM)
        return shell.communicate()[0], False


def _script(blocks: list[list[str]], ports: Mapping[str, str]) -> str:
    script = _PRELUDE
    for commands in blocks:
        for command in commands:
            background = _BACKGROUND.match(command)
            if background:
                command = f"{_BIFOLIO} serve --workers 1 --port {PORT}{background[1]}"
            script += f"{command}\nprintf '\\001'\n"
        if not all(map(_only_reads, commands)):
            script += f"{_BETWEEN_BLOCKS}\n"
    for shown, real in ports.items():
        script = script.replace(shown, real)
    return script


def _only_reads(command: str) -> bool:
    return command.startswith(_READS) and ">" not in command.partition("\n")[0]


def _copy_site(root: Path, site: Path, formats: Path | None) -> None:
    copy_site(site)
    for command in ("init -q -b main", "add -A", "commit -q -m content"):
        subprocess.run(["git", *command.split()], cwd=site, env=_environment(), check=True)
    if formats:
        (site / ".bifolio").mkdir(mode=0o700)
        shutil.copy(formats / ".gitignore", site / ".bifolio")
        copy_derived(formats, site)


def _environment() -> dict[str, str]:
    who = {
        f"GIT_{who}_{what}": "docs@example.org"
        for who in ("AUTHOR", "COMMITTER")
        for what in ("NAME", "EMAIL")
    }
    return {**os.environ, **who, "GIT_CONFIG_GLOBAL": os.devnull, "LC_ALL": "C.UTF-8"}


@contextmanager
def _nothing(folder: Path) -> Iterator[str]:
    folder.mkdir()
    yield str(free_port())


@contextmanager
def _served(root: Path, site: Path, formats: Path) -> Iterator[str]:
    _copy_site(root, site, formats)
    port = free_port()
    # One worker is enough, and starts faster than several workers.
    command = [*COMMAND, "serve", "--workers", "1"]
    command += ["--site", str(site), "--port", str(port)]
    log = site.parent / "serve.log"
    with log.open("w") as out:
        process = subprocess.Popen(command, cwd=site, stdout=out, stderr=out)
    try:
        _wait(process, port, log)
        yield str(port)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(10)


def _wait(process: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
    for _ in range(3000):
        if process.poll() is not None:
            raise SystemExit(log.read_text())
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.02)
        else:
            return
    raise SystemExit("the site is not served")
