"""Serialization of a site's entries in a forked process, while the parent process builds the index."""

import os
from collections.abc import Mapping
from mmap import ACCESS_READ, mmap
from multiprocessing import get_context

from server.site.change_log import anonymous_file
from server.storage.entry import Entry
from server.storage.helper_processes import end_with_parent
from server.storage.parse_cache import frame, pack_in_blocks

TIMEOUT_S = 10.0  # The caller may hold the write lock.


class EntryPacking:
    """Forked process that serializes all entries of a site for a full record (see `Record`).

    It must be started while the parent process has only one thread.
    """

    def __init__(self, entries: Mapping[str, Entry]) -> None:
        self._entries, self._file = entries, anonymous_file()
        self._process = get_context("fork").Process(target=_pack, args=(entries, self._file))
        self._process.start()

    def finish(self, entries: Mapping[str, Entry]) -> mmap | bytes:
        """Wait for the process, and return the serialized entries.

        The result is empty if the process failed or took longer than TIMEOUT_S, or if `entries` differs from
        the entries that the process serialized.
        """
        self._process.join(TIMEOUT_S)
        self._process.kill()
        self._process.join()
        try:
            is_valid = self._process.exitcode == 0 and entries == self._entries
            return mmap(self._file, 0, access=ACCESS_READ) if is_valid and entries else b""
        finally:
            os.close(self._file)


def _pack(entries: Mapping[str, Entry], file: int) -> None:
    end_with_parent()
    with open(file, "wb", closefd=False) as out:
        for block in pack_in_blocks(entries.values()):
            out.write(frame(block))
