# SPDX-License-Identifier: Apache-2.0
"""The package on any Python 3 without other packages."""
import collections
import multiprocessing
import os
import sys

import shmguard

OWN = "/memfd:shmguard:shared"


def descriptors():
    """How many of ours are open here."""
    found = 0
    for fd in os.listdir("/proc/self/fd"):
        try:
            found += os.readlink("/proc/self/fd/" + fd).startswith(OWN)
        except OSError:  # that of the directory itself
            pass
    return found


def read(names, sizes, results):
    results.put((names[1], list(names[-2:]), sizes["b"], len(names), len(sizes)))


def read_sent(queue, results):
    results.put(queue.get()[0])


def check_start_methods():
    """Workers of any kind read the same memory, and what travels in a queue does, too."""
    names, sizes = shmguard.SharedList("abcde"), shmguard.SharedDict({"a": 1, "b": [2]})
    for method in "fork", "spawn", "forkserver":
        context = multiprocessing.get_context(method)
        queue, results = context.Queue(), context.Queue()
        worker = context.Process(target=read, args=(names, sizes, results))
        other = context.Process(target=read_sent, args=(queue, results))
        worker.start()
        assert results.get(timeout=60) == ("b", ["d", "e"], [2], 5, 2)
        other.start()
        queue.put(names[3:])
        assert results.get(timeout=60) == "d"
        for process in worker, other:
            process.join()
            assert process.exitcode == 0
        queue.close()
        results.close()


def check_lifetime():
    before = descriptors()
    names = shmguard.SharedList(range(10))
    part = names[4:]
    del names
    assert part[0] == 4 and descriptors() > before
    del part
    assert descriptors() == before


def main():
    assert "torch" not in sys.modules and "numpy" not in sys.modules
    assert shmguard.doctor()["schema"] == "shmguard.doctor/1"
    assert shmguard.plan(collections.OrderedDict(a=1, b=[2.0, "x"]), 4, 2)["loaders"][0]["segments"] == 2
    assert shmguard.explain("Bus error")["schema"] == "shmguard.explain/1"
    assert not shmguard.is_guarded()
    check_lifetime()
    check_start_methods()


if __name__ == "__main__":
    main()
