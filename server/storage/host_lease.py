"""Lease that lets only one machine at a time serve a site on a network file system."""

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

FILE = "host.json"  # file in .bifolio/
RENEWAL_INTERVAL_S = 2.0
LEASE_TTL_S = 7.0  # A lease expires after this time without renewal.
# After writing the lease file, a server waits this long, in case a machine that started at the same time
# overwrites it.
CONTEST_DELAY_S = 0.5
_POLL_INTERVAL_S = 0.1
# Records have a fixed size and are overwritten in place, so that no other machine reads an incomplete one.
_RECORD_BYTES = 512
_BOOT_ID_FILE = Path("/proc/sys/kernel/random/boot_id")
_MOUNTS_FILE = Path("/proc/self/mountinfo")
# Types of file systems that several machines can mount. A type may have a suffix, as in fuse.sshfs.
_SHARED_TYPES = (
    "9p afs beegfs ceph cifs fuse gfs gfs2 glusterfs gpfs lustre ncpfs nfs nfs4 ocfs2 smb3 smbfs virtiofs"
)
SHARED_FILE_SYSTEMS = frozenset(_SHARED_TYPES.split())


@dataclass(frozen=True, slots=True)
class _Lease:
    """Content of the lease file. `host` is the boot id of the machine that holds the lease."""

    host: str
    name: str
    renewals: int = 0

    @classmethod
    def parse(cls, text: str) -> "_Lease":
        data = json.loads(text)
        if not isinstance(data, dict):
            raise TypeError("no lease")
        return cls(str(data.get("host")), str(data.get("name")), int(data.get("renewals", 0)))


class HostLease:
    """This machine's lease on a site. On a local file system, no lease is needed."""

    def __init__(self, root: Path) -> None:
        self._root, self._path = root, root / STATE_FOLDER / FILE
        self._own = _Lease(_host(), platform.node())
        self._held, self._due, self._is_conflict_logged = False, 0.0, False

    @contextmanager
    def held(self, *, is_needed: bool) -> Iterator[Callable[[], float | None]]:
        """Hold the lease in a `with` block if `is_needed` is set.

        Yields a function that the caller must call regularly to renew the lease. Raises SetupError if another
        machine holds the lease.
        """
        if is_needed:
            self.acquire()
        try:
            yield self.renew
        finally:
            self.release()

    def acquire(self) -> None:
        if _file_system(self._root).partition(".")[0] not in SHARED_FILE_SYSTEMS:
            return
        self._refuse_other()
        try:
            state_folder(self._root)
            self._write()
        except OSError:  # The folder is read-only here, so no lease is needed.
            return
        self._held = True
        time.sleep(CONTEST_DELAY_S)
        lease = self._read()
        if lease and lease.host != self._own.host:
            self._held = False
            raise _refusal(lease)

    def renew(self) -> float | None:
        """Renew the lease if a renewal is due.

        Return the seconds until the next renewal is due, or None if no lease is held.
        """
        if not self._held:
            return None
        remaining = self._due - time.monotonic()
        if remaining > 0:
            return remaining
        with suppress(OSError):
            self._renew()
        self._due = time.monotonic() + RENEWAL_INTERVAL_S
        return RENEWAL_INTERVAL_S

    def release(self) -> None:
        if self._held:
            lease = self._read()
            if lease and lease.host == self._own.host:
                with suppress(OSError):
                    self._path.unlink()
            self._held = False

    def _renew(self) -> None:
        lease = self._read()
        if lease and lease.host != self._own.host:
            if not self._is_conflict_logged:
                self._is_conflict_logged = True
                log.error(
                    "%s; this server was suspended for too long, so stop one of the two servers",
                    _sentence(lease),
                )
            return
        self._write()

    def _refuse_other(self) -> None:
        first = self._read()
        deadline = time.monotonic() + LEASE_TTL_S
        while first and first.host != self._own.host and time.monotonic() < deadline:
            time.sleep(_POLL_INTERVAL_S)
            lease = self._read()
            if lease is None:  # The other machine has released its lease.
                return
            if lease != first:
                if lease.host == self._own.host:
                    return
                raise _refusal(lease)

    def _read(self) -> _Lease | None:
        try:  # Opening the file makes a network file system fetch its current content.
            return _Lease.parse(self._path.read_text())
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


def _refusal(lease: _Lease) -> SetupError:
    return SetupError(
        STATE_FOLDER, None, _sentence(lease), "stop it first, or serve a clone of the repository here"
    )


def _sentence(lease: _Lease) -> str:
    return (
        f"a server on the machine {lease.name} is already serving this folder; "
        "only one machine can serve it at a time"
    )


def _host() -> str:
    try:  # Containers on the same machine share the boot id, but not the host name.
        return _BOOT_ID_FILE.read_text().strip()
    except OSError:
        return platform.node()


def _file_system(root: Path) -> str:
    try:
        device = os.stat(root).st_dev
        lines = _MOUNTS_FILE.read_text().splitlines()
    except OSError:
        return ""
    device_id = f"{os.major(device)}:{os.minor(device)}"
    for line in reversed(lines):
        mount, _, kind = line.partition(" - ")
        if mount.split()[2] == device_id:
            return kind.split()[0]
    return ""
