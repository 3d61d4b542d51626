"""Entity tags of documents: the same in all processes of a server, but nobody else can compute them."""

import subprocess
import sys
import time

from server.documents.document import make_version
from server.schema.model import Type
from server.write.precondition import use_key, version_of

PRINT = """
import sys
from server.documents.document import make_version
from server.write.precondition import use_key, version_of
from server.schema.model import Attribute, Type
type_ = Type("api::n.n", "collectionType", "n", "ns", "N", {"pin": Attribute("pin", "string", private=True)})
if len(sys.argv) > 2:
    use_key(sys.argv[2])
times = ("2024-01-01T00:00:00.000Z",) * 3
print(version_of(make_version(type_, "n1", [sys.argv[1]], times, "en", "n1.md")))
"""


def version(pin: str, *secret: str) -> str:
    """Return the entity tag that a new process computes for a document with a private value."""
    ran = subprocess.run([sys.executable, "-c", PRINT, pin, *secret], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


def test_all_that_have_the_secret_give_the_same_version() -> None:
    assert version("1234", "one secret") == version("1234", "one secret")
    assert version("1234", "one secret") != version("1235", "one secret")


def test_nobody_can_try_out_which_private_values_make_a_version() -> None:
    seen = {version("1234", "one secret"), version("1234", "other secret"), version("1234"), version("1234")}
    assert len(seen) == 4


def test_to_try_out_which_secret_makes_a_version_takes_long() -> None:
    type_ = Type("api::n.n", "collectionType", "n", "ns", "N", {})
    times = ("2024-01-01T00:00:00.000Z",) * 3
    document = make_version(type_, "n1", [], times, "en", "n1.md")
    began = time.thread_time()
    for guess in range(5):
        use_key(f"a secret of at least 32 characters {guess}")
        version_of(document)
    assert time.thread_time() - began > 5 * 0.01
