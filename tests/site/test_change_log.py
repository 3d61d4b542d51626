"""The change log: readers get every record once and in order, or a checkpoint if they are too far behind."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.site import change_log
from server.site.change_log import ChangeLog

Make = Callable[..., ChangeLog]


@pytest.fixture
def make() -> Iterator[Make]:
    with ExitStack() as stack:
        yield lambda *segment: stack.enter_context(closing(ChangeLog(*segment)))


def no_checkpoint() -> bytes:
    raise AssertionError("the segment is not full")


@given(st.lists(st.tuples(st.binary(max_size=60), st.integers(0, 3)), max_size=60))
def test_who_reads_has_everything_that_was_appended(steps: list[tuple[bytes, int]]) -> None:
    """Four readers read at random times from a log with small segments."""
    with closing(ChangeLog(100)) as log:
        appended: list[bytes] = []
        at, known = [0] * 4, [list[bytes]() for _ in range(4)]
        for record, reader in steps:
            log.append(record, lambda: b"checkpoint" + b"|".join(appended), is_required=False)
            appended.append(record.replace(b"|", b" "))
            at[reader], records = log.records_since(at[reader])
            for found in records:
                if found.startswith(b"checkpoint"):
                    known[reader] = found.removeprefix(b"checkpoint").split(b"|")
                else:
                    known[reader].append(found.replace(b"|", b" "))
            assert at[reader] == log.end
            assert b"|".join(known[reader]) == b"|".join(appended)


def test_a_record_of_any_length_is_kept(make: Make) -> None:
    log = make(1000)
    long = os.urandom(1_000_000)
    log.append(long, no_checkpoint, is_required=False)
    assert log.records_since(0) == (log.end, [long])
    log.append(b"next", lambda: b"all", is_required=False)
    assert log.records_since(0) == (log.end, [long, b"next"])
    log.append(b"more", no_checkpoint, is_required=False)
    assert log.records_since(0)[1] == [long, b"next", b"more"]


def test_records_that_are_gone_are_no_end_of_the_log(make: Make) -> None:
    """A writer is killed while it starts a new segment.

    Readers that are further behind must get an error, not an empty result.
    """
    log = make(10)
    for number in range(3):
        log.append(b"a long record", lambda number=number: b"all before %d" % number, is_required=False)
    behind, base = log.end, log._numbers[change_log._BASES + log._numbers[change_log._ACTIVE]]
    log._numbers[change_log._END] = base
    with pytest.raises(ValueError, match="missing"):
        log.records_since(0)
    log._numbers[change_log._END] = behind
    assert log.records_since(0) == (behind, [b"all before 2", b"a long record"])


@pytest.mark.parametrize("left", [0, 5])
def test_a_log_that_was_cut_off_is_damaged(make: Make, left: int) -> None:
    log = make()
    log.append(b"one", no_checkpoint, is_required=False)
    middle = log.end
    log.append(b"another", no_checkpoint, is_required=False)
    os.ftruncate(log._segments[0], middle + left)
    for position in (0, middle):
        with pytest.raises(ValueError, match="missing"):
            log.records_since(position)


def test_what_is_demanded_is_known_by_its_position(make: Make) -> None:
    log = make()
    log.append(b"a", no_checkpoint, is_required=False)
    assert log.required_position == 0
    log.append(b"b", no_checkpoint, is_required=True)
    assert log.required_position == log.end
    log.append(b"c", no_checkpoint, is_required=False)
    assert log.required_position < log.end


def test_other_processes_read_and_append(make: Make) -> None:
    log = make(10)
    log.append(b"from the parent", no_checkpoint, is_required=False)
    child = os.fork()
    if not child:
        log.append(b"from the child", lambda: b"all before", is_required=True)
        os._exit(
            log.register_worker() + 10 * (log.records_since(0)[1] == [b"from the parent", b"from the child"])
        )
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 11
    assert log.records_since(0)[1] == [b"from the parent", b"from the child"]
    assert log.register_worker() == 2


def test_one_process_leads_until_it_ends(make: Make) -> None:
    log = make()
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        log.wait_for_leadership()
        os.write(writing, b"leads")
        os.read(os.open("/dev/zero", os.O_RDONLY), 1)
        os._exit(0)
    assert os.read(reading, 5) == b"leads"
    os.waitpid(child, 0)
    log.wait_for_leadership()
    os.close(reading)
    os.close(writing)
