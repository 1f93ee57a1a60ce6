# SPDX-License-Identifier: Apache-2.0
"""Read-only sequences and mappings whose items are pickled in one memfd, so that all processes that use them share one copy.

A worker that reads a plain list writes to it: the reference count of every item is in the item, and the page is copied. Here, items come into
being when they are read, and the memory that all share is never written.

The file: a header, the pickled items one after the other, where each begins (and the last one ends), and for mappings a hash table. Numbers
are unsigned, have 64 bits, and are in the machine's order. Every process has a description of its own that cannot write. The kernel frees the
memory when the last process has closed or unmapped it, however it ended."""
import array
import ctypes
import fcntl
import hashlib
import io
import mmap
import numbers
import os
import pickle
import platform
import struct
from multiprocessing import reduction
from typing import Any, Callable, Generic, Iterable, Iterator, Mapping, Sequence, Tuple, TypeVar, Union, cast, overload

from ._library import Error

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")

HEADER = struct.Struct("=8s4Q")  # magic, number of items, where the offsets are, where the table is, slots of the table
MAGIC = b"shmguard"
NAME = "shmguard:shared"
CLOEXEC, ALLOW_SEALING = 1, 2
ADD_SEALS, EVERY_SEAL = 1033, 0xF  # seal, shrink, grow, write
SIMPLE = {str, int, bytes}  # keys that have no parts
SYSTEM_CALL = {"x86_64": 319, "aarch64": 279}


def _memfd() -> int:
    create = getattr(os, "memfd_create", None)  # since Python 3.8
    if create:
        return int(create(NAME, CLOEXEC | ALLOW_SEALING))
    libc = ctypes.CDLL(None, use_errno=True)
    fd: int = libc.syscall(ctypes.c_long(SYSTEM_CALL[platform.machine()]), NAME.encode(), ctypes.c_uint(CLOEXEC | ALLOW_SEALING))
    if fd < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return fd


class Store:
    """Pickled items in a memfd. A process that is forked has it, too; for others, the descriptor is sent along."""

    def __init__(self, fd: int) -> None:
        self.fd = fd  # owned
        self._map = mmap.mmap(fd, 0, access=mmap.ACCESS_READ)
        view = memoryview(self._map)
        magic, n, offsets, table, slots = HEADER.unpack_from(view)
        if magic != MAGIC:
            raise Error("shared: the descriptor is not that of a SharedList or SharedDict")
        self.n: int = n
        self._bytes = view
        self._offsets = view[offsets:offsets + 8 * (n + 1)].cast("Q")
        self.table = view[table:table + 16 * slots].cast("Q") if slots else None

    def __del__(self) -> None:
        fd = getattr(self, "fd", -1)
        if fd >= 0:
            os.close(fd)

    def raw(self, i: int) -> memoryview:
        offsets = self._offsets
        return self._bytes[offsets[i]:offsets[i + 1]]

    def item(self, i: int) -> Any:
        return pickle.loads(self.raw(i))

    def __deepcopy__(self, _: Any) -> "Store":
        return self  # nobody can change it

    def __reduce__(self) -> Tuple[Callable[..., "Store"], Tuple[Any, ...]]:
        return _store_arrive, (reduction.DupFd(self.fd),)


def _store_arrive(duplicate: Any) -> Store:
    return Store(duplicate.detach())


def _store_make(pickles: Iterable[bytes], table: "array.array[int]" = array.array("Q")) -> Store:
    """With a table that may be filled while the items are made."""
    fd = _memfd()
    with open(fd, "wb", buffering=1 << 20) as file:
        file.write(bytes(HEADER.size))
        offsets = array.array("Q", [HEADER.size])
        for pickled in pickles:
            file.write(pickled)
            offsets.append(offsets[-1] + len(pickled))
        begin = offsets[-1] + -offsets[-1] % 8
        file.write(bytes(begin - offsets[-1]))
        offsets.tofile(file)
        table.tofile(file)
        file.seek(0)
        file.write(HEADER.pack(MAGIC, len(offsets) - 1, begin, begin + 8 * len(offsets), len(table) // 2))
        file.flush()
        fcntl.fcntl(fd, ADD_SEALS, EVERY_SEAL)
        # Through a description that cannot write: kernels before 6.7 refuse to map a sealed file through any other.
        return Store(os.open("/proc/self/fd/{}".format(fd), os.O_RDONLY | os.O_CLOEXEC))


class SharedList(Sequence[T], Generic[T]):
    """A read-only sequence of picklable items in shared memory. A read unpickles one item; a slice is a view."""

    __slots__ = ("_store", "_range")

    def __init__(self, items: Iterable[T] = ()) -> None:
        self._store = _store_make(pickle.dumps(item, pickle.HIGHEST_PROTOCOL) for item in items)
        self._range = range(self._store.n)

    def __len__(self) -> int:
        return len(self._range)

    @overload
    def __getitem__(self, i: int) -> T: ...

    @overload
    def __getitem__(self, i: slice) -> "SharedList[T]": ...

    def __getitem__(self, i: Union[int, slice]) -> Union[T, "SharedList[T]"]:
        if isinstance(i, slice):
            return _list_view(self._store, self._range[i])
        return cast(T, self._store.item(self._range[i]))

    def __iter__(self) -> Iterator[T]:
        return map(self._store.item, self._range)

    def __reduce__(self) -> Tuple[Callable[..., "SharedList[T]"], Tuple[Any, ...]]:
        return _list_view, (self._store, self._range)

    def __repr__(self) -> str:
        return "<SharedList of {}>".format(len(self))


def _list_view(store: Store, positions: range) -> "SharedList[Any]":
    made: "SharedList[Any]" = SharedList.__new__(SharedList)
    made._store, made._range = store, positions
    return made


def _plain(key: Any) -> Any:
    """What equal keys have in common: 1, 1.0, True and numpy.int64(1) are one key."""
    if type(key) in SIMPLE:
        return key
    if isinstance(key, str):
        return str(key)
    if isinstance(key, numbers.Integral):
        return int(key)
    if isinstance(key, numbers.Real) and not isinstance(key, numbers.Rational):
        value = float(key)
        return int(value) if value.is_integer() else value
    return tuple(map(_plain, key)) if isinstance(key, tuple) else key


def _dumps(key: Any) -> bytes:
    """Without references to what was pickled before, so that equal keys give the same bytes, whether their parts are one object or not."""
    if type(key) in SIMPLE:
        return pickle.dumps(key, 4)
    out = io.BytesIO()
    pickler = pickle.Pickler(out, 4)
    pickler.fast = True
    pickler.dump(key)
    return out.getvalue()


def _hash(pickled: bytes) -> int:
    """Stable: Python's own hash differs from process to process."""
    return int.from_bytes(hashlib.blake2b(pickled, digest_size=8).digest(), "little")


class SharedDict(Mapping[K, V], Generic[K, V]):
    """A read-only mapping in shared memory. Keys may be strings, numbers, bytes, tuples of these, and other objects that pickle to the same
    bytes whenever they are equal. A read unpickles one value."""

    __slots__ = ("_store",)

    def __init__(self, items: Union[Mapping[K, V], Iterable[Tuple[K, V]]] = ()) -> None:
        found: Mapping[K, V] = items if isinstance(items, Mapping) else dict(items)
        slots = 8
        while slots < 2 * len(found):
            slots *= 2
        table = array.array("Q", bytes(16 * slots))  # hash, and number of the entry from 1 on; 0: empty

        def pickles() -> Iterator[bytes]:
            for number, (key, value) in enumerate(found.items(), 1):
                yield _dumps(key)
                yield pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
                mixed = _hash(_dumps(_plain(key)))
                slot = mixed % slots
                while table[2 * slot + 1]:
                    slot = (slot + 1) % slots
                table[2 * slot], table[2 * slot + 1] = mixed, number
        self._store = _store_make(pickles(), table)

    def _find(self, key: Any) -> int:
        """The position of the value, or -1."""
        store, table = self._store, cast(memoryview, self._store.table)
        pickled = _dumps(_plain(key))
        mixed = _hash(pickled)
        slots = len(table) // 2
        slot = mixed % slots
        while table[2 * slot + 1]:
            if table[2 * slot] == mixed:
                position: int = 2 * (table[2 * slot + 1] - 1)
                if store.raw(position) == pickled or store.item(position) == key:
                    return position + 1
            slot = (slot + 1) % slots
        return -1

    def __getitem__(self, key: K) -> V:
        position = self._find(key)
        if position < 0:
            raise KeyError(key)
        return cast(V, self._store.item(position))

    def __contains__(self, key: object) -> bool:
        return self._find(key) >= 0

    def __len__(self) -> int:
        return self._store.n // 2

    def __iter__(self) -> Iterator[K]:
        return map(self._store.item, range(0, self._store.n, 2))

    def __reduce__(self) -> Tuple[Callable[..., "SharedDict[K, V]"], Tuple[Any, ...]]:
        return _dict_view, (self._store,)

    def __repr__(self) -> str:
        return "<SharedDict of {}>".format(len(self))


def _dict_view(store: Store) -> "SharedDict[Any, Any]":
    made: "SharedDict[Any, Any]" = SharedDict.__new__(SharedDict)
    made._store = store
    return made
