# SPDX-License-Identifier: Apache-2.0
"""How much shared memory a DataLoader needs, from one of its samples."""
import os
import resource
import sys
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence

from ._library import Error, ask, is_guarded

NUMBERS = {bool: "bool", int: "int64", float: "float64"}  # what the default collate makes of them
PREFETCH = 2  # PyTorch's default
BUDGET = 0.75  # of the available memory: what the guard allows, by default
OTHER_DESCRIPTORS = 128  # that a trainer has open besides those of its batches


def fields(sample: Any) -> Iterator[str]:
    """The tensors that a DataLoader's default collate makes of such samples, as `plan --sample` takes them: float32[3,224,224]."""
    if isinstance(sample, (str, bytes)) or sample is None:  # a list of them, which travels by pickle
        return
    if hasattr(sample, "dtype") and hasattr(sample, "shape"):  # a tensor, an array, or a number of NumPy
        shape = list(sample.shape)
        if 0 not in shape:  # nothing is shared for it
            yield str(sample.dtype) + ("[{}]".format(",".join(map(str, shape))) if shape else "")
    elif isinstance(sample, (bool, int, float)):
        yield next(name for kind, name in NUMBERS.items() if isinstance(sample, kind))
    elif isinstance(sample, Mapping):
        for value in sample.values():
            yield from fields(value)
    elif isinstance(sample, Sequence):
        for value in sample:
            yield from fields(value)
    elif hasattr(sample, "__dataclass_fields__") and not isinstance(sample, type):
        for name in sample.__dataclass_fields__:
            yield from fields(getattr(sample, name))
    else:
        raise Error("plan: a sample has a {}, of which PyTorch's default collate makes no tensor; give batch_bytes instead of a sample".format(
            type(sample).__name__), 65)


def plan(sample: Any = None, batch_size: Optional[int] = None, num_workers: Optional[int] = None, prefetch_factor: Optional[int] = None,
         **options: Any) -> Dict[str, Any]:
    """How much shared memory a job needs, and what fits here: `shmguard plan`.

    sample is what dataset[0] returns. Further options are those of the program: held=2, ranks=8, strategy="file_system",
    collate="list", shm="64M", batch_bytes="32M" instead of a sample."""
    described = None
    if sample is not None:
        described = ";".join("sample=" + field for field in fields(sample))
        if not described:
            raise Error("plan: a sample has no tensors, arrays or numbers, so its batches need no shared memory", 65)
    return ask("plan", dict(options, loader=described, batch=batch_size, workers=num_workers, prefetch=prefetch_factor))


class LoaderKwargs(Dict[str, Any]):
    """Keyword arguments for a DataLoader; `reasons` says in sentences why they are what they are."""

    def __init__(self, settings: Dict[str, Any], reasons: List[str]) -> None:
        super().__init__(settings)
        self.reasons = reasons


def _mib(size: int) -> str:
    return "{:.1f} MiB".format(size / 2**20)


def _first(dataset: Any) -> Any:
    """One sample, of a dataset with an index or of an iterable one."""
    try:
        return dataset[0]
    except (NotImplementedError, TypeError):  # PyTorch's IterableDataset inherits an index that does not work
        return next(iter(dataset))


def _fits(sample: Any, batch_size: int, workers: int, prefetch: int, guarded: bool) -> bool:
    need = plan(sample, batch_size, workers, prefetch)
    if not guarded:
        return bool(need["fits"])
    memory = need["memory"]["available"] or need["memory"]["total"]
    return not memory or bool(need["guard"]["memory"] <= BUDGET * memory)


def _most_workers(sample: Any, batch_size: int, workers: int, guarded: bool) -> int:
    """The most workers, up to those given, with which the loader fits; 0: none."""
    low, high = 0, workers
    while low < high:
        middle = (low + high + 1) // 2
        if _fits(sample, batch_size, middle, PREFETCH, guarded):
            low = middle
        else:
            high = middle - 1
    return low


def _most_descriptors(segments: int, guarded: bool) -> int:
    """The most workers whose batches have a descriptor for each tensor. The guard raises the limit of descriptors."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if guarded or limit == resource.RLIM_INFINITY:
        return sys.maxsize
    return max((limit - OTHER_DESCRIPTORS) // segments - 1, 0) // PREFETCH


def loader_kwargs(dataset: Any, batch_size: int, num_workers: int) -> LoaderKwargs:
    """The largest settings up to those given that are safe here: DataLoader(dataset, **loader_kwargs(dataset, 64, 8)).

    The batch size stays as it is, because it decides what is learned. Workers are given up before PyTorch's usual prefetch_factor of 2, except
    for the last one."""
    sample = _first(dataset) if num_workers > 0 else None
    if num_workers == 0 or not list(fields(sample)):
        return LoaderKwargs({"batch_size": batch_size, "num_workers": num_workers}, ["Nothing is shared."])
    guarded = is_guarded()
    need = plan(sample, batch_size, num_workers, PREFETCH)
    batch, segments = _mib(need["batch_bytes"]), need["loaders"][0]["segments"]
    where = "the memory" if guarded else "/dev/shm"
    cpus = len(os.sched_getaffinity(0))
    workers, reasons = num_workers, []
    for most, why in (
            (cpus, "that is the number of CPUs"),
            (_most_descriptors(segments, guarded), "every tensor of a batch ({}) takes a descriptor".format(segments)),
            (_most_workers(sample, batch_size, num_workers, guarded), "more batches of {} do not fit into {}".format(batch, where))):
        if most < workers:
            workers = most
            reasons.append("num_workers is at most {}, because {}.".format(most, why))
    prefetch = PREFETCH
    if workers == 0 and _fits(sample, batch_size, 1, 1, guarded):
        workers, prefetch = 1, 1
        reasons.append("One worker fits with prefetch_factor=1.")
    if workers == 0:
        reasons.append("Without workers nothing is shared. To have workers, run the training under shmguard run, or lower batch_size.")
        return LoaderKwargs({"batch_size": batch_size, "num_workers": 0}, reasons)
    need = plan(sample, batch_size, workers, prefetch)
    reasons.append("{} batches of {} exist at a time; with a margin they need {}.".format(need["in_flight"], batch, _mib(need["with_margin"])))
    return LoaderKwargs({"batch_size": batch_size, "num_workers": workers, "prefetch_factor": prefetch}, reasons)
