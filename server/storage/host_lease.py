"""The lease of a site's folder: on a file system that several machines share, one of them serves it.

The locks of a site work between the processes of one kernel, and what another machine writes is not seen
before a file system tells of it. So a server of another machine is refused. The lease is a file in .bifolio/
that the server renews; it names the kernel, so that the containers of one machine count as one. A lease that
is not renewed is nobody's: its machine has crashed, or the folder is a copy.
"""

import json
import logging
import os
import platform
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from server.errors import SetupError
from server.paths import STATE_FOLDER, state_folder

log = logging.getLogger("bifolio")

FILE = "host.json"  # in .bifolio/
RENEWAL_INTERVAL_S = 2.0
LEASE_TTL_S = 7.0  # A lease that was not renewed for so long has expired.
CONTEST_DELAY_S = 0.5  # After so long, a host that took the lease at the same time has written it as well.
_POLL_INTERVAL_S = 0.1
_RECORD_BYTES = 512  # The lease is written in place at a fixed size, so nobody reads a part of it.
_BOOT_ID_FILE = Path("/proc/sys/kernel/random/boot_id")
_MOUNTS_FILE = Path("/proc/self/mountinfo")
# The types of file systems, before a dot, that several machines can have mounted.
_SHARED_TYPES = (
    "9p afs beegfs ceph cifs fuse gfs gfs2 glusterfs gpfs lustre ncpfs nfs nfs4 ocfs2 smb3 smbfs virtiofs"
)
SHARED_FILE_SYSTEMS = frozenset(_SHARED_TYPES.split())


@dataclass(frozen=True, slots=True)
class _Lease:
    """Who has the folder: the kernel, its name for people, and how often that was renewed."""

    host: str
    name: str
    renewals: int = 0

    @classmethod
    def of(cls, text: str) -> "_Lease":
        """Read what a file says. Raises ValueError and TypeError."""
        found = json.loads(text)
        if not isinstance(found, dict):
            raise TypeError("no lease")
        return cls(str(found.get("host")), str(found.get("name")), int(found.get("renewals", 0)))


class HostLease:
    """The lease of the site at `root` for this machine. It does nothing on a file system of one machine."""

    def __init__(self, root: Path) -> None:
        self._root, self._path = root, root / STATE_FOLDER / FILE
        self._own = _Lease(_host(), platform.node())
        self._held, self._due, self._told = False, 0.0, False

    @contextmanager
    def held(self, *, is_wanted: bool) -> Iterator[Callable[[], float | None]]:
        """Hold the lease, if it is wanted; the block gets `renew`. Raises SetupError; see `take`."""
        if is_wanted:
            self.take()
        try:
            yield self.renew
        finally:
            self.release()

    def take(self) -> None:
        """Take the lease. Raises SetupError while another machine renews it."""
        if _file_system(self._root).partition(".")[0] not in SHARED_FILE_SYSTEMS:
            return
        self._refuse_other()
        try:
            state_folder(self._root)
            self._write()
        except OSError:  # Nor can anybody else write to the site from here.
            return
        self._held = True
        time.sleep(CONTEST_DELAY_S)
        found = self._read()
        if found and found.host != self._own.host:
            self._held = False
            raise _refusal(found)

    def renew(self) -> float | None:
        """Renew the lease if that is due; return in how many seconds it is next, None without a lease."""
        if not self._held:
            return None
        left = self._due - time.monotonic()
        if left > 0:
            return left
        with suppress(OSError):
            self._renew()
        self._due = time.monotonic() + RENEWAL_INTERVAL_S
        return RENEWAL_INTERVAL_S

    def release(self) -> None:
        """Leave the folder to any machine."""
        if self._held:
            found = self._read()
            if found and found.host == self._own.host:
                with suppress(OSError):
                    self._path.unlink()
            self._held = False

    def _renew(self) -> None:
        found = self._read()
        if found and found.host != self._own.host:
            if not self._told:
                self._told = True
                log.error("%s; this server was suspended for too long: end one of them", _sentence(found))
            return
        self._write()

    def _refuse_other(self) -> None:
        """Raise SetupError if a machine other than this one renews the lease."""
        first = self._read()
        deadline = time.monotonic() + LEASE_TTL_S
        while first and first.host != self._own.host and time.monotonic() < deadline:
            time.sleep(_POLL_INTERVAL_S)
            found = self._read()
            if found is None:  # It was released.
                return
            if found != first:
                if found.host == self._own.host:
                    return
                raise _refusal(found)

    def _read(self) -> _Lease | None:
        """The lease as the file has it now: to open it asks the server of the files, not a cache."""
        try:
            return _Lease.of(self._path.read_text())
        except (OSError, ValueError, TypeError):
            return None

    def _write(self) -> None:
        self._own = replace(self._own, renewals=self._own.renewals + 1)
        data = json.dumps(asdict(self._own)).encode().ljust(_RECORD_BYTES)
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.pwrite(descriptor, data, 0)
        finally:
            os.close(descriptor)


def _refusal(found: _Lease) -> SetupError:
    return SetupError(
        STATE_FOLDER, None, _sentence(found), "end it first, or serve a clone of the repository here"
    )


def _sentence(found: _Lease) -> str:
    return f"a server on the machine {found.name} serves this folder, and one machine at a time can"


def _host() -> str:
    """What the processes and containers of one kernel have in common, and no other has."""
    try:
        return _BOOT_ID_FILE.read_text().strip()
    except OSError:
        return platform.node()


def _file_system(root: Path) -> str:
    """The type of the file system that a folder is on, such as `nfs4`; "" where the system does not say."""
    try:
        device = os.stat(root).st_dev
        lines = _MOUNTS_FILE.read_text().splitlines()
    except OSError:
        return ""
    wanted = f"{os.major(device)}:{os.minor(device)}"
    for line in reversed(lines):
        mount, _, kind = line.partition(" - ")
        if mount.split()[2] == wanted:
            return kind.split()[0]
    return ""
