# SPDX-License-Identifier: Apache-2.0
"""SharedList and SharedDict behave as the list and the dict that they were made from, and cannot be written."""
import copy
import decimal
import os
import pickle
import random
import signal

import numpy
import pytest

from shmguard import SharedDict, SharedList, ps
from shmguard._shared import Store

ITEMS = [None, 1, "two", b"three", {"four": [4]}, (5, 5.0), numpy.arange(6), "x" * 100000, ""]


def test_list():
    shared = SharedList(iter(ITEMS))
    assert len(shared) == len(ITEMS)
    for i in (*range(-len(ITEMS), len(ITEMS)), numpy.int64(2)):
        assert pickle.dumps(shared[i]) == pickle.dumps(ITEMS[i])
    for i in (len(ITEMS), -len(ITEMS) - 1):
        with pytest.raises(IndexError):
            shared[i]
    with pytest.raises(TypeError):
        shared["1"]
    assert [type(item) for item in shared] == list(map(type, ITEMS))
    assert "two" in shared[:3] and shared[:3].index("two") == 2 and list(reversed(shared[:2])) == [1, None]
    assert not SharedList() and list(SharedList()[1:]) == []


def test_slices():
    plain = list(range(20))
    shared = SharedList(plain)
    for _ in range(200):
        cut = slice(*(random.choice([None, *range(-22, 23)]) for _ in range(2)), random.choice([None, 1, 2, 3, -1, -2]))
        assert list(shared[cut]) == plain[cut]
        assert list(shared[cut][1:]) == plain[cut][1:]


def test_dict():
    plain = {"key {}".format(i): i for i in range(3000)}
    plain.update({i: str(i) for i in range(500)})
    plain.update({(i, "x"): i for i in range(100)})
    plain.update({None: 0, b"bytes": 1, 2.5: 2, frozenset([1]): 3, "": 4, decimal.Decimal("0.1"): 5, -1: 6, 1 << 70: 7})
    shared = SharedDict(plain)
    assert dict(shared) == plain and list(shared) == list(plain) and len(shared) == len(plain)
    assert all(shared[key] == value and key in shared for key, value in plain.items())
    for missing in ("key 3000", 3001, (1, "y"), (), 0.25, b"", object, -2):
        assert missing not in shared and shared.get(missing) is None
        with pytest.raises(KeyError):
            shared[missing]
    assert list(SharedDict([("a", 1), ("b", 2), ("a", 3)]).items()) == [("a", 3), ("b", 2)]
    assert len(SharedDict()) == 0 and "a" not in SharedDict()


@pytest.mark.parametrize("key, equal", [(1, True), (1, 1.0), (1, numpy.int64(1)), ("a", numpy.str_("a")), (2.5, numpy.float64(2.5)), ((1, "a"), (1.0, "a")),
                                        (("x" * 3, "xxx"), ("xx" + "x"[:], "x" * 3))])
def test_equal_keys_are_one_key(key, equal):
    assert SharedDict({key: "found"})[equal] == SharedDict({equal: "found"})[key] == "found"


def test_nobody_can_write():
    shared = SharedList(ITEMS)
    fd = shared._store.fd
    with pytest.raises(OSError):
        os.write(fd, b"x")
    with pytest.raises(OSError):
        os.ftruncate(fd, 0)
    again = os.open("/proc/self/fd/{}".format(fd), os.O_RDWR)
    with pytest.raises(OSError):
        os.pwrite(again, b"x", 0)
    os.close(again)
    with pytest.raises(TypeError):
        shared[0] = 1


def test_another_file_is_refused(tmp_path):
    (tmp_path / "file").write_bytes(bytes(64))
    with pytest.raises(Exception, match="not that of a SharedList"):
        Store(os.open(tmp_path / "file", os.O_RDONLY))


def test_copies_are_the_same_memory():
    shared, index = SharedList(ITEMS), SharedDict({"a": 1})
    for again in copy.copy(shared), copy.deepcopy(shared):
        assert again._store is shared._store and len(again) == len(shared)
    assert copy.deepcopy({"data": index})["data"]["a"] == 1


def test_an_item_that_cannot_be_pickled():
    with pytest.raises(Exception, match="pickle"):
        SharedList([1, lambda: None])


def test_freed_with_the_last_holder():
    """The holder is killed, and the memory is gone with it."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        shared = SharedList([bytes(1 << 20)])
        os.write(writing, str(os.stat(shared._store.fd).st_ino).encode())
        signal.pause()
    inode = int(os.read(reading, 100))
    held = "/proc/{}/fd".format(child)
    assert any(os.stat(os.path.join(held, name)).st_ino == inode for name in os.listdir(held))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(reading)
    os.close(writing)
    assert inode not in [segment["inode"] for segment in ps()["segments"] if segment["backing"] == "memfd"]
