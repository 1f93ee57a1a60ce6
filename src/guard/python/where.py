# SPDX-License-Identifier: Apache-2.0
"""The guard's part in Python that finds the line that leaks (docs/where.md). It is compiled only in a process that was asked.

The supervisor asks by a word, and changes it at the beginning, in the middle and at the end of a window. attend() is called soon after each
change, between two batches. It looks, and at the end it says what grew in each half of the window. It never runs code of the program: types
are compared exactly, and attributes are read from where CPython keeps them. Given by the library:

    word()                what is asked for: (stage, phase)
    claim(worker)         whether this process is the one that is asked; worker: whether it is one
    release()             this process ends: another one may take over
    say(text)             to the supervisor; whether it was sent
    native_begin(n, file, name, line, ...)  from now on allocations are sampled; whether that is possible here, where the stack is as given
    native_middle()       what is allocated from now on belongs to the second half
    native_end()          no more; a line of numbers and texts for each site of what is still allocated

Without the guard (where_remote.py), the last three are missing, and there is

    tracing(stop)         stop() will be called whatever happens; a function for when it has been
"""
import gc
import os
import sys
from itertools import islice
from time import monotonic, thread_time

word, claim, release, say, native_begin, native_middle, native_end, tracing = map(
    globals().get, ("word", "claim", "release", "say", "native_begin", "native_middle", "native_end", "tracing"))
modules = sys.modules

CENSUS, PYTHON, PYTHON_DEEP, NATIVE = 1, 2, 3, 4
BEGIN, MIDDLE, END = 0, 1, 2
KIND_ATTRIBUTE, KIND_TYPE, KIND_PYTHON, KIND_NATIVE = "attribute", "type", "python", "native"
TEXT_BYTES = 8000  # of one message
SITES_MOST = 16
DEEP_FRAMES = 16
WINDOW_LEAST = 1.0  # seconds: a process that ends sooner has seen nothing
NODES_MOST, CENSUS_SECONDS, DEPTH_MOST, ITEMS_MOST, FOUND_MOST = 4000, 0.02, 4, 16, 32
BLOCKS_MOST = 1 << 20  # memory blocks of the interpreter: to look at more objects would take long, and copy what a worker shares
TRACES_BYTES_MOST = 24 << 20  # that tracemalloc takes, some 50 for each object: to list half a million takes half a second
PAGE = os.sysconf("SC_PAGE_SIZE")
LIBRARIES = tuple({os.path.dirname(os.__file__) + os.sep, "<frozen "})
PACKAGES = os.sep + "site-packages" + os.sep, os.sep + "dist-packages" + os.sep

mro_of = type.__dict__["__mro__"].__get__
dict_of = type.__dict__["__dict__"].__get__
Function, Builtin, BoundMethod = type(lambda: None), type(len), type(gc.__loader__.find_spec)
DataLoader, Model = modules["torch.utils.data.dataloader"].DataLoader, modules["torch.nn.modules.module"].Module
GetSet, Member = type(dict_of(Function)["__code__"]), type(dict_of(Function)["__closure__"])
Module = type(sys)


def ours(error):
    """Whether this text has raised it, and not a signal handler of the program that happened to run here."""
    trace = error.__traceback__
    while trace.tb_next:
        trace = trace.tb_next
    return trace.tb_frame.f_code.co_filename == ours.__code__.co_filename


# --- What a process is. ---


def worker_arguments():
    """Of a DataLoader worker: the parameters that it was started with. None: this process is none."""
    process = modules["multiprocessing.process"].current_process()
    loop = modules["torch.utils.data._utils.worker"]._worker_loop
    if getattr(process, "_target", None) is not loop:
        return None
    return dict(zip(loop.__code__.co_varnames, process._args))


def worker_number():
    arguments = worker_arguments()
    return -1 if arguments is None else arguments.get("worker_id", -1)


def private_bytes():
    descriptor = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
    try:
        fields = os.read(descriptor, 256).split()
    finally:
        os.close(descriptor)
    return (int(fields[1]) - int(fields[2])) * PAGE


def descriptors():
    return len(os.listdir("/proc/self/fd"))


# --- The census. ---


def derives(kind, base):
    return any(parent is base for parent in mro_of(kind))


def own_dict(value):
    """The attributes of an object, read without its own code. None: it has none."""
    for kind in mro_of(type(value)):
        found = dict_of(kind).get("__dict__")
        if found is not None:
            return found.__get__(value) if type(found) is GetSet else None
    return None


def slots(value):
    for kind in mro_of(type(value)):
        for name, member in list(dict_of(kind).items()):
            if type(member) is Member:
                try:
                    yield name, member.__get__(value)
                except AttributeError:
                    pass


def ids(*kinds):
    """A type may have a metaclass with a hash of its own: types are told apart by their addresses."""
    return frozenset(map(id, kinds))


collections = modules["collections"]
DICTS = ids(dict, collections.OrderedDict, collections.defaultdict, collections.Counter)
CONTAINERS = ids(list, set, bytearray, collections.deque) | DICTS
LEAVES = ids(str, bytes, int, float, complex, bool, type(None), frozenset, type, Builtin, Module)
PLAIN = CONTAINERS | LEAVES | ids(tuple)


def bytes_of(value, inner=True):
    """An estimate."""
    kind = type(value)
    if id(kind) not in PLAIN:
        attributes = own_dict(value)
        if kind is getattr(modules.get("numpy"), "ndarray", None):
            return value.nbytes + 112
        return object.__sizeof__(value) + (bytes_of(attributes) if inner and type(attributes) is dict else 0)
    size = kind.__sizeof__(value) + 16
    if not inner or id(kind) not in CONTAINERS and kind is not tuple:
        return size
    items = newest(value)
    parts = len(items) // 2 if id(kind) in DICTS else len(items)  # of a dict, keys and values
    return size + (sum(bytes_of(item, False) for item in items) * length_of(value) // parts if parts else 0)


def newest(value):
    """Some items, those that were added last where that is known."""
    kind = type(value)
    if kind is list or kind is tuple:
        return value[-ITEMS_MOST:]
    if id(kind) in DICTS:
        pairs = list(islice(reversed(dict.items(value)), ITEMS_MOST))  # at once: another thread may change it
        return [part for pair in pairs for part in pair]
    if kind is set or kind is frozenset:
        return list(islice(iter(value), ITEMS_MOST))
    if kind is collections.deque:
        return list(islice(reversed(value), ITEMS_MOST))
    return ()


def length_of(value):
    return dict.__len__(value) if id(type(value)) in DICTS else type(value).__len__(value)


def place_of(value):
    """The file of the class or function whose object this is."""
    code = getattr(value, "__code__", None) if type(value) is Function else None
    kinds = () if code else mro_of(type(value))
    for kind in kinds:
        for member in list(dict_of(kind).values()):
            if type(member) is Function:
                code = code or member.__code__
    return code.co_filename if code else ""


class Census:
    """Lengths by the path that leads to a container."""

    def __init__(self, roots):
        self.found = {}  # path: (length, bytes, type, file)
        self.seen = set()
        self.until = monotonic() + CENSUS_SECONDS
        queue = [(path, value, place_of(value), 0) for path, value in roots]
        for at in range(NODES_MOST):  # the nearest first
            if at >= len(queue) or monotonic() > self.until:
                break
            queue.extend(self.visit(*queue[at]))

    def visit(self, path, value, file, depth):
        kind = type(value)
        if id(kind) in LEAVES or id(value) in self.seen or depth > DEPTH_MOST:
            return
        self.seen.add(id(value))
        if id(kind) in CONTAINERS:
            length = length_of(value)
            if kind is not collections.deque or value.maxlen is None:
                self.found[path] = length, bytes_of(value), kind.__name__, file
            if length <= ITEMS_MOST and kind is not bytearray:
                pairs = dict.items(value) if id(kind) in DICTS else enumerate(value)
                for key, item in list(pairs):
                    name = repr(key) if type(key) in (str, int) else "..."
                    yield f"{path}[{name}]", item, file, depth + 1
        elif kind is Function:
            for name, cell in zip(value.__code__.co_freevars, value.__closure__ or ()):
                try:
                    yield f"{path}.{name}", cell.cell_contents, file, depth + 1
                except ValueError:  # empty
                    pass
            for item in value.__defaults__ or ():
                yield f"{path}()", item, file, depth + 1
            yield from self.attributes(path, value, file, depth)
        elif kind is BoundMethod:
            yield f"{path}.__self__", value.__self__, file, depth + 1
        elif kind.__name__ == "_lru_cache_wrapper" and kind.__module__ == "functools":
            info = value.cache_info()
            if info.maxsize is None:
                self.found[path] = info.currsize, info.currsize * 200, "lru_cache", file
        elif kind.__name__ == "partial" and kind.__module__ == "functools":
            yield path, value.func, file, depth + 1
        elif kind is tuple:
            for place, item in enumerate(value[:ITEMS_MOST]):
                yield f"{path}[{place}]", item, file, depth + 1
        else:
            file = place_of(value) or file
            yield from self.attributes(path, value, file, depth)
            for name, item in slots(value):
                yield f"{path}.{name}", item, file, depth + 1

    def attributes(self, path, value, file, depth):
        attributes = own_dict(value)
        if type(attributes) is dict:
            for name, item in list(attributes.items()):
                if type(name) is str:
                    yield f"{path}.{name}", item, file, depth + 1


def module_roots(name):
    module = modules.get(name)
    if type(module) is not Module or is_library(module.__dict__.get("__file__") or "<frozen "):
        return
    for key, value in list(module.__dict__.items()):
        kind = type(value)
        if type(key) is str and not key.startswith("__") and id(kind) not in LEAVES and not derives(kind, type):
            yield f"{name}.{key}", value


def roots(found):
    arguments = worker_arguments()
    names = ["__main__", "__mp_main__"]
    for key in ("dataset", "collate_fn"):
        value = (arguments or {}).get(key)
        if value is not None:
            yield key, value
            names.append(value.__module__ if type(value) is Function else dict_of(type(value)).get("__module__"))
    for value in found:
        kind = type(value)
        attributes = own_dict(value) or {}
        if derives(kind, DataLoader):
            yield "dataset", attributes.get("dataset")
            yield "collate_fn", attributes.get("collate_fn")
        else:
            yield kind.__name__, value
    for name in dict.fromkeys(names):
        if type(name) is str:
            yield from module_roots(name)


def look_at_all():
    """How many objects the collector knows, by type, and in the trainer its loaders and models. Taking an object into a list writes to it, and
    so copies what a forked worker shares: those are not looked at."""
    number = worker_number()
    if number >= 0 and "__mp_main__" not in modules or sys.getallocatedblocks() > BLOCKS_MOST:
        return {}, []
    objects = gc.get_objects()
    kinds = list(map(type, objects))
    counts = collections.Counter(map(id, kinds))
    known = dict(zip(map(id, kinds), kinds))
    wanted = {address for address, kind in known.items() if number < 0 and is_wanted(kind)}
    found = [value for value in objects if id(type(value)) in wanted][:FOUND_MOST] if wanted else []
    return {address: (type_name(known[address]), count) for address, count in counts.items()}, found


def is_wanted(kind):
    """Loaders, and models of the program's own."""
    module = dict_of(kind).get("__module__")
    own = type(module) is str and not module.startswith("torch.")
    return kind is DataLoader or own and (derives(kind, DataLoader) or derives(kind, Model))


def type_name(kind):
    module = dict_of(kind).get("__module__")
    name = type.__dict__["__qualname__"].__get__(kind)
    return name if type(module) is not str or module == "builtins" else f"{module}.{name}"


class CensusStage:
    kind = CENSUS

    def __init__(self):
        self.looks = []

    def begin(self):
        self.look()

    def look(self):
        counts, found = look_at_all()
        self.looks.append((Census(roots(found)).found, counts))

    middle = look

    def end(self):
        self.look()
        (first, first_types), middle, (last, last_types) = self.looks[0], self.looks[1] if len(self.looks) > 2 else None, self.looks[-1]
        sites = []
        for path, (length, size, kind, file) in last.items():
            before = first.get(path)
            if before is None or length <= before[0] or kind != before[2]:
                continue
            between = middle and middle[0].get(path)
            late = size - between[1] if between else None
            sites.append((size - before[1], late, length - before[0], KIND_ATTRIBUTE, file, 0, f"{path}: {kind}"))
        for address, (name, count) in last_types.items():
            grown = count - first_types.get(address, (name, count))[1]
            between = middle and middle[1].get(address)
            if grown >= 100 and between and count - between[1] >= grown // 4:
                sites.append((0, 0, grown, KIND_TYPE, "", 0, name))
        return sites

    def overhead(self):
        return 0

    def cancel(self):
        self.looks.clear()


# --- Python objects, by line. ---


def is_library(file):
    return file.startswith(LIBRARIES) or any(part in file for part in PACKAGES)


def code_objects(code):
    yield code
    for constant in code.co_consts:
        if type(constant) is type(code):
            yield from code_objects(constant)


def functions_in(names, depth=0):
    for value in list(names.values()):
        kind = type(value)
        value = value.__func__ if kind in (staticmethod, classmethod) else value
        if type(value) is Function:
            yield value
        elif depth == 0 and derives(kind, type):
            yield from functions_in(dict_of(value), 1)


def function_at(file, line):
    """The name of the function that this line belongs to; tracemalloc does not know it."""
    best = None
    for module in list(modules.values()):
        if type(module) is not Module or module.__dict__.get("__file__") != file:
            continue
        for function in functions_in(module.__dict__):
            if function.__code__.co_filename != file:
                continue
            for code in code_objects(function.__code__):
                if code.co_firstlineno <= line <= last_line(code) and (best is None or code.co_firstlineno > best.co_firstlineno):
                    best = code
    return best.co_name if best else "<module>"


def last_line(code):
    if hasattr(code, "co_lines"):  # 3.10
        return max((line for _, _, line in code.co_lines() if line), default=0)
    last = line = code.co_firstlineno
    for step in code.co_lnotab[1::2]:
        line += step - 256 if step > 127 else step
        last = max(last, line)
    return last


class PythonStage:
    kind = PYTHON
    frames = 1

    def __init__(self):
        import _tracemalloc  # built in
        self.trace = _tracemalloc
        self.before = None
        self.ours = False  # what is traced
        self.ended = None

    def begin(self):
        if self.trace.is_tracing():
            raise RuntimeError("the program uses tracemalloc itself")
        self.blocks = sys.getallocatedblocks()
        self.ended = tracing and tracing(self.trace.stop)
        self.ours = True
        self.trace.start(self.frames)

    def look(self):
        """{(file, line): [bytes, objects]} of what was allocated since the beginning, and still is. None: these are too many objects."""
        if self.trace.get_tracemalloc_memory() > TRACES_BYTES_MOST:
            return None
        found = {}
        for trace in self.trace._get_traces():
            file, line = self.place(trace[2])
            entry = found.get((file, line))
            if entry is None:
                found[file, line] = entry = [0, 0]
            entry[0] += trace[1]
            entry[1] += 1
        return found

    @staticmethod
    def place(frames):
        for file, line in frames:  # the nearest first
            if not is_library(file) and file != "<shmguard>":
                return file, line
        return frames[0]

    def middle(self):
        self.before = self.look()

    def end(self):
        try:
            after = self.look()
            blocks = sys.getallocatedblocks() - self.blocks
        finally:
            self.cancel()
        if after is None:
            return [(0, 0, max(blocks, 0), KIND_TYPE, "", 0, "Python's memory blocks, too many to look at their lines")]
        sites = []
        for (file, line), (size, count) in after.items():
            if file == "<shmguard>":
                continue
            late = None if self.before is None else size - self.before.get((file, line), (0, 0))[0]
            sites.append((size, late, count, KIND_PYTHON, file, line, None))
        return sites

    def overhead(self):
        return self.trace.get_tracemalloc_memory() if self.trace.is_tracing() else 0

    def cancel(self):
        if self.ours:
            self.trace.stop()
        self.ours = False
        ended, self.ended = self.ended, None
        if ended:
            ended()


class PythonDeepStage(PythonStage):
    kind = PYTHON_DEEP
    frames = DEEP_FRAMES


def ascii_of(text):
    return "".join(letter if " " <= letter <= "~" else "?" for letter in text)


class NativeStage:
    kind = NATIVE

    def begin(self):
        frames, frame = [], sys._getframe()
        while frame and len(frames) < 4:
            frames.append((frame.f_code.co_filename[-255:], frame.f_code.co_name, frame))
            frame = frame.f_back
        count = len(frames)
        frames += [("", "", None)] * (4 - count)
        expected = [part for file, name, at in frames for part in (ascii_of(file), ascii_of(name), at)]
        if not native_begin(count, *[part if type(part) is str else part.f_lineno if part else 0 for part in expected]):
            raise RuntimeError("allocations cannot be sampled here")

    def middle(self):
        native_middle()

    def end(self):
        sites = []
        for line in native_end().decode().splitlines():
            number, size, late, count, file, name = line.split("\t")
            sites.append((int(size), int(late), int(count), KIND_NATIVE, file, int(number), name))
        return sites

    def overhead(self):
        return 0

    def cancel(self):
        native_end()


STAGES = {stage.kind: stage for stage in (CensusStage, PythonStage, PythonDeepStage, NativeStage)}


# --- A window. ---


def clean(text):
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def lines_of(sites, has_halves):
    """As the supervisor reads them."""
    sites.sort(key=lambda site: (site[3] == KIND_TYPE, -site[0], -site[2]))
    for size, late, count, kind, file, line, what in sites[:SITES_MOST]:
        if what is None:
            what = function_at(file, line)
        yield f"site\t{kind}\t{line}\t{max(size, 0)}\t{max(late, 0) if has_halves and late is not None else '?'}\t{count}\t{clean(file)}\t{clean(what)}\n"


class Window:
    """One stage in this process."""

    def __init__(self, kind):
        self.pid = os.getpid()
        self.cost = 0.0
        self.halves = []
        self.began = monotonic()
        self.stage = STAGES[kind]()

    def begin(self):
        cost = thread_time()
        self.stage.begin()
        self.note()
        self.cost += thread_time() - cost

    def note(self):
        self.halves.append((private_bytes() - self.stage.overhead(), descriptors(), monotonic() - self.began))

    def has_halves(self):
        """Whether the middle was in the middle: a worker may begin late, or end early."""
        return len(self.halves) == 3 and 0.3 <= self.halves[1][2] / self.halves[2][2] <= 0.7

    def middle(self):
        cost = thread_time()
        self.note()
        self.stage.middle()
        self.cost += thread_time() - cost

    def end(self):
        """At the end of the window, or of the process."""
        cost = thread_time()
        self.note()
        seconds = self.halves[-1][2]
        sites = self.stage.end()
        if seconds < WINDOW_LEAST:
            return
        lines = "".join(lines_of(sites, self.has_halves()))
        self.cost += thread_time() - cost
        (before, open_before, _), between, (after, open_after, _) = self.halves[0], self.halves[1:-1], self.halves[-1]
        late = after - between[0][0] if self.has_halves() else "?"
        head = (f"window\t{self.stage.kind}\t{worker_number()}\t{int(seconds * 1000)}\t{after - before}\t{late}\t"
                f"{open_after - open_before}\t{int(self.cost * 1000)}\n")
        text = (head + lines).encode("utf-8", "replace")
        if len(text) > TEXT_BYTES:
            text = text[:text.rindex(b"\n", 0, TEXT_BYTES) + 1]
        say(text)

    def cancel(self):
        self.stage.cancel()


def leave():
    """The process ends before its window. Nothing begins any more (is_leaving): no one would end it."""
    global window
    ended, window = window, None
    if ended is None or ended.pid != os.getpid():
        return
    try:
        ended.end()
    except Exception as error:
        if not ours(error):
            raise
    release()


def is_leaving():
    """Registers leave() with multiprocessing, once in each process: a worker that is forked forgets what its trainer has registered. Without
    the guard nothing may stay registered, and a process that ends says nothing."""
    global registered
    util = modules.get("multiprocessing.util")
    if util and registered != os.getpid() and not tracing:
        util.Finalize(None, leave, exitpriority=100)
        registered = os.getpid()
    return util is not None and util.is_exiting()


def forked():
    """In a child: its copy of a trace costs time, and no word may ever reach it. Samples are dropped by the library."""
    global window
    inherited, window = begun[:], None
    begun.clear()
    for other in inherited:
        if isinstance(other.stage, PythonStage):
            other.stage.cancel()


registered = 0  # the process in which leave() is
window = None
begun = []  # the window, and one that a signal handler of the program has kept from beginning or ending


def step():
    global window
    kind, phase = word()
    if any(other.pid != os.getpid() for other in begun):  # a fork that Python does not know of
        forked()
    for other in begun:
        if other is not window:
            other.cancel()
    begun[:] = [window] if window else []
    if window and window.stage.kind == kind and phase == MIDDLE and len(window.halves) == 1:
        window.middle()
    elif window and window.stage.kind == kind and phase == END:
        ended, window = window, None
        ended.end()
    elif window and window.stage.kind != kind:
        ended, window = window, None
        ended.cancel()
    if not window and kind in STAGES and phase != END and not is_leaving() and (kind == CENSUS or claim(worker_number() >= 0)):
        begun.append(Window(kind))  # before anything is switched on
        begun[-1].begin()
        window = begun[-1]


if not tracing:
    os.register_at_fork(after_in_child=forked)


def attend():
    """After each change of the word. It is called again after the next one."""
    global window
    if "t" in sys.abiflags or hasattr(sys, "gettotalrefcount"):
        say(b"failed\tpython\n")
        return False
    try:
        step()
    except Exception as error:
        if not ours(error):
            raise
        window = None
        for failed in begun:
            failed.cancel()
        say(("failed\t" + clean(f"{type(error).__name__}: {error}")[:200] + "\n").encode("utf-8", "replace"))
    return True
