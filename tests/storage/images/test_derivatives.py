"""Tests of the cache of transformed images, and of the processes that make them."""

import errno
import hashlib
import io
import os
import random
import re
import resource
import shutil
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, cast

import pytest
from PIL import Image

from server.config.transformation import Transformation
from server.errors import BusyError, StorageError
from server.storage.images import derivatives, processes, scheduling
from server.storage.images.derivatives import DerivativeRequest, Derivatives
from server.storage.images.errors import UntransformableError
from server.storage.images.processes import ImageProcesses, Job, JobResult, image_processes
from tests.api.test_upload import picture
from tests.servers import children
from tests.sites import write
from tests.small_disk import fill, mounted
from tests.waiting import until

KEY = "00" * 16
SOURCE = picture(90, 70)


@pytest.fixture
def images(tmp_path: Path) -> Derivatives:
    write(tmp_path, {"site.yaml": "name: Images\n"})
    return Derivatives(tmp_path, 2)


def request(
    data: bytes = SOURCE,
    key: str = KEY,
    width: int = 30,
    most: int = 10**6,
    opened: Callable[[], None] | None = None,
) -> DerivativeRequest:
    def open_image() -> IO[bytes]:
        if opened:
            opened()
        file = os.memfd_create("image")
        os.write(file, data)
        return open(file, "rb")

    return DerivativeRequest(key, Job(Transformation(width), "png", 10**6), open_image, most)


def made(images: Derivatives, wanted: DerivativeRequest) -> bytes:
    with images.make(wanted).file as file:
        return file.read()


def files(images: Derivatives) -> list[Path]:
    return sorted(images.folder.glob("*/*"))


def test_an_image_is_made_once_and_then_read(images: Derivatives) -> None:
    opened: list[int] = []
    wanted = request(opened=lambda: opened.append(1))
    assert images.find(KEY) is None
    data = made(images, wanted)
    assert Image.open(io.BytesIO(data)).size == (30, 23)
    assert made(images, wanted) == data
    assert made(Derivatives(images.root, 2), wanted) == data
    assert len(opened) == 1


def test_a_damaged_image_is_made_again(images: Derivatives) -> None:
    data = made(images, request())
    [path] = files(images)
    for damage in (data[:-5], b"", bytes(len(data)), b"x" * len(data)):
        path.write_bytes(damage)
        assert made(images, request()) == data
        assert made(Derivatives(images.root, 2), request()) == data


def test_a_deleted_cache_is_made_again(images: Derivatives) -> None:
    data = made(images, request())
    for path in files(images):
        path.unlink()
        path.parent.rmdir()
    assert made(images, request()) == data


class Deleting(io.FileIO):
    """An image. When it is passed to a decoder, another program deletes the cache, up to `times` times."""

    cache: Path
    times = 1

    def fileno(self) -> int:
        if self.times and [*self.cache.glob("new-*")]:
            self.times -= 1
            shutil.rmtree(self.cache)
        return super().fileno()


def test_a_cache_that_is_deleted_during_a_transformation_is_made_again(
    images: Derivatives, tmp_path: Path
) -> None:
    (tmp_path / "a.png").write_bytes(SOURCE)
    Deleting.cache, image = images.folder, Deleting(tmp_path / "a.png")
    wanted = replace(request(), open_image=lambda: cast(IO[bytes], image))
    assert Image.open(io.BytesIO(made(images, wanted))).size == (30, 23)
    assert (image.times, len(files(images))) == (0, 1)
    image = Deleting(tmp_path / "a.png")
    image.times = 100
    with pytest.raises(StorageError):
        images.make(replace(wanted, key="01" * 16))


def test_many_threads_share_one_transformation(images: Derivatives) -> None:
    opened: list[int] = []
    wanted = request(opened=lambda: opened.append(1))
    with ThreadPoolExecutor(12) as pool:
        results = {*pool.map(lambda _: made(images, wanted), range(12))}
    assert (len(results), len(opened)) == (1, 1)


def test_only_so_many_images_are_transformed_at_once(images: Derivatives) -> None:
    made(images, request())
    process = image_processes()._process
    assert process is not None
    slow, seen = picture(1100, 900), [0]
    with ThreadPoolExecutor(6) as pool:
        wanted = [request(slow, key=f"{number:02x}" * 16, width=1000) for number in range(6)]
        done = [pool.submit(made, images, one) for one in wanted]
        while not all(future.done() for future in done):
            seen.append(len(children(process.pid)))
        assert all(future.result() for future in done)
    assert 1 <= max(seen) <= 2


def test_a_full_queue_is_refused_while_cached_images_are_read(
    images: Derivatives, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduling, "MAX_QUEUED", 1)
    made(images, request())
    begun, release = threading.Event(), threading.Event()

    def opened() -> None:
        begun.set()
        release.wait(5)

    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(made, images, request(key="01" * 16, opened=opened))
        begun.wait(5)
        with pytest.raises(BusyError):
            images.make(request(key="02" * 16))
        assert made(images, request())
        release.set()
        assert slow.result()


def test_one_client_cannot_fill_the_queue_while_other_requests_are_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduling, "MAX_QUEUED_BY_CLIENT", 1)
    images = Derivatives(tmp_path, 2, is_answering=lambda: True)
    begun, release = threading.Event(), threading.Event()

    def opened() -> None:
        begun.set()
        release.wait(20)

    def wanted(number: int, client: str, opened: Callable[[], None] | None = None) -> DerivativeRequest:
        return replace(request(key=f"{number:02x}" * 16, opened=opened), client=client)

    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(made, images, wanted(1, "a", opened))
        begun.wait(20)
        with pytest.raises(BusyError):
            images.make(wanted(2, "a"))
        assert made(images, wanted(3, "b"))
        release.set()
        assert slow.result()
    assert made(images, wanted(2, "a"))


BAD = {
    "cut": SOURCE[: len(SOURCE) // 2],
    "empty": b"",
    "text": b"<html>",
    "only a header": SOURCE[:30],
    "pixels": SOURCE[:16] + b"\x00\x00\xff\xff\x00\x00\xff\xff" + SOURCE[24:],
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_image_is_refused_and_not_tried_again(images: Derivatives, name: str) -> None:
    opened: list[int] = []
    wanted = request(BAD[name], opened=lambda: opened.append(1))
    for _ in range(2):
        with pytest.raises(UntransformableError):
            images.make(wanted)
    assert len(opened) == 1
    assert files(images) == []
    assert [*images.folder.glob("new-*")] == []


def test_a_result_that_is_too_large_is_refused_with_the_limit(images: Derivatives) -> None:
    image_processes().end()
    made(images, request())
    [decoder] = children(fork_server())
    resource.prlimit(decoder, resource.RLIMIT_FSIZE, (100, 100))
    with pytest.raises(UntransformableError, match="gives a result of more than 64 MB; request a smaller"):
        images.make(request(key="01" * 16))


def test_a_storage_error_without_a_number_says_what_is_wrong(images: Derivatives) -> None:
    def fail() -> None:
        raise OSError("the link is broken")

    with pytest.raises(StorageError, match="images/: the link is broken"):
        images._store(fail)


def fork_server() -> int:
    process = image_processes()._process
    assert process is not None
    return process.pid


def test_a_killed_process_is_replaced(images: Derivatives) -> None:
    made(images, request())
    process = image_processes()._process
    assert process is not None
    process.kill()
    process.wait()
    assert made(images, request(key="01" * 16))


def test_a_decoder_is_reused_until_an_image_is_bad(images: Derivatives) -> None:
    image_processes().end()
    made(images, request())
    [decoder] = children(fork_server())
    made(images, request(key="01" * 16))
    assert children(fork_server()) == {decoder}
    with pytest.raises(UntransformableError):
        images.make(request(BAD["cut"], key="02" * 16))
    made(images, request(key="03" * 16))
    assert decoder not in children(fork_server())


def test_decoders_have_a_lower_priority_than_requests(images: Derivatives) -> None:
    made(images, request())
    own = os.getpriority(os.PRIO_PROCESS, 0)
    for pid in (fork_server(), *children(fork_server())):
        assert os.getpriority(os.PRIO_PROCESS, pid) == min(19, own + 15)


def test_a_decoder_that_needed_much_memory_is_not_reused(images: Derivatives) -> None:
    image_processes().end()
    made(images, request())
    [decoder] = children(fork_server())
    out = io.BytesIO()
    Image.new("1", (14_000, 10_000)).save(out, "PNG")  # 140 MB when decoded
    large = request(out.getvalue(), key="01" * 16)
    made(images, replace(large, job=Job(Transformation(30), "png", 10**9)))
    assert made(images, request(key="02" * 16))
    assert children(fork_server()) - {decoder}


def test_a_frozen_fork_server_is_replaced(images: Derivatives, monkeypatch: pytest.MonkeyPatch) -> None:
    made(images, request())
    monkeypatch.setattr(processes, "START_TIMEOUT_S", 1.0)
    frozen = fork_server()
    for pid in children(frozen):  # Workers serve without it.
        os.kill(pid, signal.SIGKILL)
    until(lambda: not children(frozen))
    os.kill(frozen, signal.SIGSTOP)
    assert made(images, request(key="01" * 16))
    assert fork_server() != frozen


def test_a_frozen_decoder_is_replaced(images: Derivatives, monkeypatch: pytest.MonkeyPatch) -> None:
    image_processes().end()
    made(images, request())
    monkeypatch.setattr(processes, "START_TIMEOUT_S", 1.0)
    server = fork_server()
    [frozen] = children(server)
    os.kill(frozen, signal.SIGSTOP)
    assert made(images, request(key="01" * 16))
    until(lambda: frozen not in children(server))
    assert fork_server() == server


SLOW = replace(request(picture(4000, 3000), "03" * 16), job=Job(Transformation(2900), "avif", 10**8))


def signal_while_busy(images: Derivatives, number: int) -> set[int]:
    """Send a signal to the decoders after a transformation has begun. Return the decoders."""
    until(lambda: bool([*images.folder.glob("new-*")] and children(fork_server())))
    decoders = children(fork_server())
    for pid in decoders:
        os.kill(pid, number)
    return decoders


def test_an_image_whose_process_was_killed_can_be_tried_again(images: Derivatives) -> None:
    made(images, request())
    with ThreadPoolExecutor(1) as pool:
        killing = pool.submit(signal_while_busy, images, signal.SIGKILL)
        with suppress(BusyError):  # If it was killed before it had begun, another one takes over at once.
            made(images, SLOW)
        killing.result()
    assert made(images, replace(SLOW, job=Job(Transformation(20), "avif", 10**8)))


def processor_ticks(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def test_a_decoder_that_a_limit_ends_is_not_tried_again(images: Derivatives) -> None:
    image_processes().end()
    made(images, request())
    [decoder] = children(fork_server())
    limits = Path(f"/proc/{decoder}/limits").read_text()
    assert re.search(r"^Max address space +1073741824 ", limits, re.MULTILINE)
    assert re.search(r"^Max file size +64000000 ", limits, re.MULTILINE)
    assert re.search(r"^Max cpu time +2\d ", limits, re.MULTILINE)
    before = processor_ticks(decoder)
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(made, images, SLOW)
        until(lambda: processor_ticks(decoder) > before + 5)
        os.kill(decoder, signal.SIGXCPU)
        with pytest.raises(UntransformableError, match="takes too much time"):
            slow.result()
    with pytest.raises(UntransformableError, match="takes too much time"):
        images.make(SLOW)
    assert made(images, request(key="01" * 16))


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT])
def test_an_image_that_crashes_its_decoder_is_not_tried_again(images: Derivatives, number: int) -> None:
    image_processes().end()
    made(images, request())
    [decoder] = children(fork_server())
    before = processor_ticks(decoder)
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(made, images, SLOW)
        until(lambda: processor_ticks(decoder) > before + 5)
        os.kill(decoder, number)
        with pytest.raises(UntransformableError, match="can't be decoded or encoded"):
            slow.result()
    with pytest.raises(UntransformableError, match="can't be decoded or encoded"):
        images.make(SLOW)


def test_a_decoder_that_freezes_while_it_works_is_killed(
    images: Derivatives, monkeypatch: pytest.MonkeyPatch
) -> None:
    image_processes().end()
    made(images, request())
    [decoder] = children(fork_server())
    monkeypatch.setattr(processes, "TIMEOUT_S", 1.0)
    before = processor_ticks(decoder)
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(made, images, SLOW)
        until(lambda: processor_ticks(decoder) > before + 5)
        os.kill(decoder, signal.SIGSTOP)
        with pytest.raises(BusyError, match="its process ended or did not respond; try again"):
            slow.result(processes.START_TIMEOUT_S)
    until(lambda: decoder not in children(fork_server()))
    assert made(images, request(key="01" * 16))


def test_a_request_waits_only_so_long_while_its_image_is_made(
    images: Derivatives, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduling, "QUEUE_TIMEOUT_S", 0.1)
    release = threading.Event()

    def opened() -> None:
        release.wait(20)

    wanted = request(opened=opened)
    with pytest.raises(BusyError, match="The image is not ready yet; try again"):
        images.make(wanted)
    release.set()
    until(lambda: files(images) != [])
    assert made(images, wanted)


@pytest.mark.parametrize(("is_answering", "at_once"), [(True, 1), (False, 2)])
def test_one_image_less_is_transformed_while_other_requests_are_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_answering: bool, at_once: int
) -> None:
    images = Derivatives(tmp_path, 2, is_answering=lambda: is_answering)
    lock, running, most, jobs = threading.Lock(), 0, 0, list[Job]()
    run = ImageProcesses.run

    def observed(self: ImageProcesses, job: Job, *files: IO[bytes]) -> JobResult:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
            jobs.append(job)
        until(lambda: most >= at_once)
        time.sleep(0.05)  # Others may begin meanwhile.
        try:
            return run(self, job, *files)
        finally:
            with lock:
                running -= 1

    monkeypatch.setattr(ImageProcesses, "run", observed)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda number: made(images, request(key=f"{number:08x}" + "0" * 24)), range(4)))
    assert (most, {job.avif_threads for job in jobs}) == (at_once, {int(is_answering)})


def test_one_client_has_one_image_transformed_at_a_time_and_another_does_not_wait_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduling, "LAST_SLOT_WAIT_S", 0.0)
    images = Derivatives(tmp_path, 2, is_answering=lambda: True)
    release, running = threading.Event(), list[int]()
    run = ImageProcesses.run

    def observed(self: ImageProcesses, job: Job, *files: IO[bytes]) -> JobResult:
        running.append(job.transformation.width or 0)
        release.wait(20)
        return run(self, job, *files)

    monkeypatch.setattr(ImageProcesses, "run", observed)
    with ThreadPoolExecutor(3) as pool:
        for width, client in ((10, "a"), (11, "a"), (12, "b")):
            wanted = replace(request(key=f"{width:08x}" + "0" * 24, width=width), client=client)
            pool.submit(made, images, wanted)
            if width == 10:
                until(lambda: running == [10])
        until(lambda: running == [10, 12])
        release.set()
        until(lambda: running == [10, 12, 11])


@pytest.mark.parametrize("format_", ["jpg", "webp", "png", "avif"])
def test_an_image_is_not_cut_off_by_a_full_disk(tmp_path: Path, format_: str) -> None:
    noise = Image.frombytes("RGB", (200, 200), random.Random(1).randbytes(120_000))
    with mounted(tmp_path / "site", "1m") as site:
        write(site, {"site.yaml": "name: Images\n"})
        images, out = Derivatives(site, 1), io.BytesIO()
        noise.save(out, "PNG")
        assert made(images, request())
        job = Job(Transformation(200, quality=100), format_, 10**6)
        wanted = replace(request(out.getvalue(), key="01" * 16), job=job)
        fill(site / "filler")
        os.truncate(site / "filler", (site / "filler").stat().st_size - 8192)
        with pytest.raises(StorageError):
            images.make(wanted)
        (site / "filler").unlink()
        Image.open(io.BytesIO(made(images, wanted))).load()


def test_a_link_is_not_used_as_the_cache(images: Derivatives, tmp_path: Path) -> None:
    made(images, request())
    images.folder.rename(tmp_path / "elsewhere")
    images.folder.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorageError, match="is a symbolic link"):
        images.make(request(key="01" * 16))


@pytest.mark.parametrize("change", [{"format": "../jpg"}, {"digest": "../x"}])
def test_a_reply_that_is_not_from_our_decoder_is_not_used(
    images: Derivatives, monkeypatch: pytest.MonkeyPatch, change: dict[str, str]
) -> None:
    reply = {"width": 1, "height": 1, "format": "png", "digest": "0" * 64, "source_digest": "0" * 64}
    monkeypatch.setattr(ImageProcesses, "_reply", lambda *_: reply | change)
    with pytest.raises(BusyError):
        images.make(request())


def test_an_error_about_a_replaced_image_is_not_kept(images: Derivatives) -> None:
    wanted = replace(request(b"damaged"), digest=hashlib.sha256(SOURCE).hexdigest())
    with pytest.raises(UntransformableError):
        images.make(wanted)
    assert made(images, replace(request(), digest=wanted.digest))


def test_an_image_that_was_replaced_meanwhile_is_not_cached(images: Derivatives) -> None:
    with pytest.raises(BusyError, match="was replaced"):
        images.make(replace(request(), digest="0" * 64))
    assert files(images) == []
    assert made(images, replace(request(), digest=hashlib.sha256(SOURCE).hexdigest()))


def test_an_image_that_is_larger_than_the_cache_is_returned(images: Derivatives) -> None:
    assert made(images, request(most=10)) == made(images, request(most=10))


def test_the_least_recently_used_images_are_evicted(images: Derivatives) -> None:
    size = len(made(images, request(most=10**9)))
    for number in range(1, 8):
        key = f"{number:02x}" * 16
        made(images, request(key=key, most=10**9))
        path = next(path for path in files(images) if path.name.startswith(key))
        os.utime(path, (time.time() - 100 + number,) * 2)
    made(images, request(key="ff" * 16, most=4 * size))
    kept = {path.name[:2] for path in files(images)}
    assert len(kept) <= 4
    assert "ff" in kept
    assert "01" not in kept


def test_a_folder_that_cannot_be_written_to_is_an_error_of_storage(images: Derivatives) -> None:
    images.folder.parent.mkdir()
    images.folder.write_text("not a folder")
    with pytest.raises(StorageError, match=r"can't be written to .bifolio/images/: File exists"):
        images.make(request())


def test_an_image_is_made_in_the_background(images: Derivatives) -> None:
    images.make_later(request())
    until(lambda: files(images) != [])
    again = Derivatives(images.root, 2).find(KEY)
    assert again is not None
    again.file.close()


def make_last(images: Derivatives, number: int) -> None:
    """Make an image in the background, and wait for it. All earlier ones are finished then."""
    key = f"{number:02}" * 16
    images.make_later(request(key=key))
    until(lambda: any(path.name.startswith(key) for path in files(images)), 10)


def test_an_image_waits_only_once_to_be_made_in_the_background(
    images: Derivatives, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduling, "MAX_LATER", 2)
    release = threading.Event()
    wanted = request(opened=lambda: release.wait(30) and None)
    for _ in range(5):
        images.make_later(wanted)
    images.make_later(request(key="01" * 16))
    release.set()
    until(lambda: len(files(images)) == 2, 10)


def test_an_image_that_failed_in_the_background_is_not_tried_again_at_once(
    images: Derivatives, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[int] = []

    def fail() -> None:
        opened.append(1)
        raise OSError(errno.EIO, "failed")

    for number in (1, 2):
        images.make_later(request(opened=fail))
        make_last(images, number)
    assert len(opened) == 1
    monkeypatch.setattr(derivatives, "RETRY_LATER_S", 0.0)
    images.make_later(request(opened=fail))
    make_last(images, 3)
    assert len(opened) == 2


def test_a_request_that_has_waited_for_the_bucket_does_not_wait_as_long_again(images: Derivatives) -> None:
    release = threading.Event()
    wanted = request(opened=lambda: release.wait(30) and None)
    with pytest.raises(BusyError):
        images.make(wanted, time.monotonic() - 60)
    assert files(images) == []
    release.set()
    until(lambda: files(images) != [])
