# SPDX-License-Identifier: Apache-2.0
"""The guard's part in Python: makes a dataset immortal before a DataLoader's workers are forked (docs/freeze.md).

Like the lane (lane.py), this text is inside the preload library and runs in the trainer. Given by the library:

    freeze(dataset, probe, attribute, owner, names, leaves, deque, defaultdict, array, address)
                    makes what is plain in the dataset immortal, once; the others show what objects look like
    decline(why)    says why this process freezes nothing
"""
import os
import sys
from collections import defaultdict, deque

freeze, decline = map(globals().get, ("freeze", "decline"))
modules = sys.modules

WHY_BUILD, WHY_TORCH, WHY_START = 2, 3, 4
NUMBERS = ("bool_ int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 longdouble complex64 complex128 clongdouble "
           "datetime64 timedelta64").split()


class Probe:
    """An ordinary class."""

    def __init__(self, attribute):
        self.attribute = attribute


def ours(error):
    """Whether this text has raised it, and not a signal handler of the program that happened to run here."""
    trace = error.__traceback__
    while trace.tb_next:
        trace = trace.tb_next
    return trace.tb_frame.f_code.co_filename == ours.__code__.co_filename


def specimens():
    probe, owner = Probe([]), Probe([])
    numpy, dates = (vars(modules[name]) if name in modules else {} for name in ("numpy", "datetime"))
    leaves = [names[name] for names in (numpy, dates) for name in NUMBERS + ["date", "timedelta"] if name in names]
    array, address = None, 0
    if "ndarray" in numpy and "empty" in numpy:
        array = numpy["empty"]((2, 3), dtype=object)
        address = array.__array_interface__["data"][0]
    return probe, probe.attribute, owner, vars(owner), tuple(leaves), deque, defaultdict, array, address


def consider(process, forks):
    """Before a process of multiprocessing is started."""
    loop = modules["torch.utils.data._utils.worker"]._worker_loop
    if process._target is not loop:
        return
    given = dict(zip(loop.__code__.co_varnames[:loop.__code__.co_argcount], process._args))
    holder = given.get("dataset_holder") or [given.get("dataset")]  # since PyTorch 2.14; before
    if "worker_id" not in given or holder[0] is None:
        decline(WHY_TORCH)
    elif not forks:
        decline(WHY_START)
    elif given["worker_id"] == 0:  # once for each loader
        freeze(holder[0], *specimens())


class Hook:
    """In the place of the function that starts a process."""

    def __init__(self, start, forks):
        self.start = start
        self.forks = forks

    def __call__(self, process):
        try:
            consider(process, self.forks)
        except Exception as error:
            if not ours(error):
                raise
            decline(WHY_TORCH)
        return self.start(process)


def attend():
    """At every semaphore of multiprocessing. False: this process freezes nothing, and never will."""
    if sys.implementation.name != "cpython" or "t" in sys.abiflags or hasattr(sys, "gettotalrefcount"):
        decline(WHY_BUILD)
        return False
    context = modules["multiprocessing.context"]
    for process in context.ForkProcess, context.SpawnProcess, context.ForkServerProcess:
        if type(vars(process)["_Popen"]) is staticmethod:
            process._Popen = Hook(process._Popen, process is context.ForkProcess)
    return True
