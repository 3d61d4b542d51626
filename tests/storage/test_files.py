"""A walk of a folder tree: its results can be sent from one process to another."""

import pickle
from pathlib import Path

from server.storage.files import FileListing, walk


def test_a_walk_is_the_same_after_it_was_sent(tmp_path: Path) -> None:
    assert pickle.loads(pickle.dumps(FileListing())) == FileListing()
    for name in ("a.md", "é.md", "b/c.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "lost").symlink_to("nowhere")
    (tmp_path / "linked.md").symlink_to("a.md")
    found = walk(tmp_path, [""])
    assert set(found.files) == {"a.md", "é.md", "b/c.md", "linked.md"}
    assert found.links == {"linked.md": "a.md"}
    assert len(found.problems) == 1
    assert pickle.loads(pickle.dumps(found)) == found
