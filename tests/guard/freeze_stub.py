# SPDX-License-Identifier: Apache-2.0
"""Datasets that are frozen, or must not be, without PyTorch: freeze_stub.py CASE. Run with the library preloaded.

The library acts when multiprocessing starts a process whose function is torch.utils.data._utils.worker._worker_loop. So a module of that
name, with a function of its parameters, is all that is needed here. A case prints what it found.
"""
import array
import collections
import contextlib
import copy
import dataclasses
import enum
import gc
import multiprocessing
import os
import pathlib
import pickle
import random
import signal
import sys
import threading
import time
import types
import weakref


def _worker_loop(dataset, look, pipe, worker_id):
    pipe.send(look(dataset))


for name in "torch", "torch.utils", "torch.utils.data", "torch.utils.data._utils", "torch.utils.data._utils.worker":
    sys.modules[name] = types.ModuleType(name)
sys.modules["torch.utils.data._utils.worker"]._worker_loop = _worker_loop


def load(dataset, look=len, method="fork"):
    """As a DataLoader with one worker: what `look` finds in the worker."""
    context = multiprocessing.get_context(method)
    context.Queue()  # whose semaphores the library notices
    for _ in range(3):  # instructions, between which the interpreter calls it
        time.sleep(0)
    here, there = context.Pipe()
    worker = context.Process(target=_worker_loop, args=(dataset, look, there, 0))
    worker.start()
    there.close()
    answer = here.recv()
    worker.join()
    return answer


IMMORTAL = 1 << 30


def frozen(thing):
    return sys.getrefcount(thing) > IMMORTAL


class Data:
    def __init__(self, **attributes):
        self.__dict__.update(attributes)

    def __len__(self):
        return 1


class Slots:
    __slots__ = ("first", "second")

    def __init__(self, number):
        self.first, self.second = f"slot {number}", [number + 0.5]


class Plain:
    def __init__(self, number):
        self.name, self.box = f"plain {number}", [number + 0.5, 1000 + number]


@dataclasses.dataclass
class Record:
    name: str
    box: list


Point = collections.namedtuple("Point", "x y")


class Missing(dict):
    def __missing__(self, key):
        raise AssertionError("code of the program ran")


class Word(str):
    """A text with attributes."""


class Open:
    """Not plain, with plain attributes."""
    count = 0

    def __init__(self, number):
        Open.count += 1
        self.name, self.box = f"open {number}", [number + 0.5]

    def __del__(self):
        Open.count -= 1


class Nosy:
    """Whatever is asked of it, it notices."""
    asked = []

    def __init__(self):
        object.__setattr__(self, "text", "a text of " + "nosy")

    def __getattribute__(self, name):
        Nosy.asked.append(name)
        return object.__getattribute__(self, name)

    def __eq__(self, other):
        Nosy.asked.append("eq")
        return True

    def __hash__(self):
        Nosy.asked.append("hash")
        return 7

    @property
    def computed(self):
        Nosy.asked.append("property")


class Meta(type):
    def __getattribute__(cls, name):
        Nosy.asked.append("class " + name)
        return type.__getattribute__(cls, name)


class Strange(metaclass=Meta):
    pass


class Final:
    ended = []

    def __init__(self):
        self.text = "a text of " + "final"

    def __del__(self):
        Final.ended.append(1)


class Colour(enum.Enum):
    RED = 1


def text(number):
    return f"a text, number {number}"


def kinds():
    """What is plain."""
    local_class = type("Elsewhere", (), {})
    data = Data(
        texts=[text(n) for n in range(10)], wide=["straße" + text(1), "中文" + text(2)], numbers=[1 << 70, 1000, 3.5, 2j + 1],
        raw=[text(1).encode(), bytearray(b"raw")], nested=[[[text(3)]]], pairs=[(text(4), 10001)], sets=[{text(5), text(6)}, frozenset([text(7)])],
        mapping={text(8): {text(9): [10002]}}, ordered=collections.OrderedDict(a=[text(10)]), queue=collections.deque([text(11)]),
        default=collections.defaultdict(list, {text(12): [text(13)]}), counter=collections.Counter([text(14)]), plain=[Plain(1)], slots=[Slots(1)],
        records=[Record(text(15), [1.5])], points=[Point(text(16), 7.5)], missing=Missing(a=text(17)), colours=[Colour.RED, text(18)],
        path=[pathlib.Path("/tmp", text(19))], span=[range(5)], bound=[Strange()])
    bad = Data(lock=[threading.Lock(), text(20)], function=[lambda: 1, text(21)], module=[os, text(22)], file=[sys.stdout, text(23)],
               final=[Final(), text(24)], elsewhere=[local_class(), text(25)], generator=[(n for n in ()), text(26)], error=[ValueError(), text(27)],
               code=[text.__code__, text(30)], buffer=[array.array("d", [1]), text(31)], view=[memoryview(b"raw"), text(32)],
               c_class=[random.Random(1), text(33)])
    data.bad = bad
    bad.deep = [[bad.lock], [text(28)]]
    watched = Plain(2)
    bad.weak = [watched, text(29)]
    cache = weakref.WeakKeyDictionary({watched: 1})
    load(data)
    for name, value in vars(data).items():
        if name != "bad":
            print(name, frozen(value) and all(map(frozen, value.values() if isinstance(value, dict) else value)))
    for name, value in vars(bad).items():
        print("bad", name, not frozen(value), not frozen(value[0]) and frozen(value[1]))
    kinds_of_object = [Plain, text(34)]
    load(Data(kinds_of_object=kinds_of_object))
    print("class", not frozen(Plain), frozen(kinds_of_object))
    print("not its own", not frozen(data), not frozen(bad), len(cache))


def code_of_program():
    """None of it runs."""
    data = Data(nosy=[Nosy(), Nosy()], strange=[Strange()], mapping={Nosy(): 1}, missing=Missing(a=1))
    Nosy.asked.clear()
    load(data)
    print(Nosy.asked, frozen(data.nosy[0]))


def shapes():
    """Cycles, depth, shared parts, and what leads back to the dataset."""
    ring = [text(1)]
    ring.append([ring])
    deep = []
    for _ in range(1_000_000):
        deep = [deep]
    shared = [text(2)]
    data = Data(ring=ring, deep=deep, one=[shared], two=[shared, threading.Lock()])
    data.back = [text(3), [data]]
    open_ring = [text(4), threading.Lock()]
    open_ring.append([open_ring])
    data.open_ring = open_ring
    counts = sys.getrefcount(open_ring), sys.getrefcount(data.back)
    load(data)
    print("ring", frozen(ring), frozen(ring[1]), "deep", frozen(deep), frozen(deep[0][0]), "shared", frozen(shared), frozen(data.one),
          frozen(data.two), "back", frozen(data.back), frozen(data.back[0]), "open", frozen(open_ring),
          counts == (sys.getrefcount(open_ring), sys.getrefcount(data.back)))
    while deep:
        deep = deep.pop()


def use():
    """What a program does with frozen objects."""
    data = Data(items=[{"name": text(n), "box": [n + 0.5], "point": Point(text(n), n)} for n in range(1000)], texts=[text(n) for n in range(100)],
                plain=[Plain(n) for n in range(100)])
    copies = copy.deepcopy(data.items), copy.deepcopy(vars(data.plain[3]))
    load(data)
    items = data.items
    print(frozen(items[7]), copies[0] == items, copy.deepcopy(items) == items, pickle.loads(pickle.dumps(items)) == items, sorted(data.texts)[0],
          items[3]["name"] is sys.intern(items[3]["name"]), vars(data.plain[3]) == copies[1], copy.copy(items[4]) == items[4])
    del items[0]["box"], items[-1]
    items[1]["box"].append(text(1))
    items[2]["more"] = [items]
    items.append({"new": []})
    data.texts[0] += " more"
    data.plain[0].box = data.plain
    data.plain[1].more = Plain(7)
    items.sort(key=lambda item: item.get("name", ""))
    print(len(items), data.texts[0], data.plain[1].more.name, gc.collect() >= 0, len(gc.get_objects()) > 0, gc.is_tracked(items[5]))
    gc.freeze(), gc.unfreeze(), gc.collect()
    print(load(data, look=lambda data: len(data.items)))
    del data, items
    gc.collect()


def change(data):
    data.items.clear()
    data.names["a"] = "changed"
    data.plain[0].name = "changed"
    return len(data.items)


def isolation():
    """Workers that change the dataset have copies of their own."""
    data = Data(items=[text(n) for n in range(1000)], names={"a": text(1)}, plain=[Plain(1)])
    print(load(data, look=change), load(data, look=change), len(data.items), data.names["a"], data.plain[0].name)


class Numbers(list):
    pass


def rebuilt():
    """Only the first of datasets that come and go is frozen."""
    for epoch in range(4):
        data = Data(items=[text(epoch * 10000 + n) for n in range(10000)])
        load(data)
        print(epoch, frozen(data.items))


def filled():
    """Small datasets that get a file after their workers were started, and are dropped: one file stays open, and no more."""
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(4):
        data = Data(inner=Data(file=None))
        load(data)
        data.inner.file = open(os.devnull)
        del data
        print(len(os.listdir("/proc/self/fd")) - before)


def replaced():
    data, other = Data(items=[text(n) for n in range(10000)], more=[text(7)]), Data(items=[text(n) for n in range(200)])
    load(data)
    load(other)
    load(data)
    print(frozen(data.items), frozen(other.items))
    data.items = [text(n) for n in range(300)]
    load(data)
    third = Data(items=[text(8)])
    load(third)
    print(frozen(data.items), frozen(third.items))


def refilled():
    data = Data(items=[text(n) for n in range(10000)])
    load(data)
    data.items[:] = [text(n + 1000) for n in range(10000)]
    load(data)
    third = Data(items=[text(8)])
    load(third)
    print(frozen(data.items[0]), frozen(third.items))


def shuffled():
    """Nothing is lost when items change their places, or when others are added."""
    data = Data(items=[text(n) for n in range(10000)], index={text(n): [n] for n in range(10000)})
    load(data)
    data.items.reverse()
    data.items.append(text(1))
    data.epoch, data.cache = 1000, {}
    load(data)
    other = Data(items=[text(8)])
    load(other)
    print(frozen(other.items))


def lists():
    """Builtin containers have no weak references."""
    data, other = [text(n) for n in range(10000)], [text(n) for n in range(50)]
    load(data)
    load(other)
    load(data)
    print(frozen(data), frozen(data[0]), frozen(other[0]))
    del data
    third = [text(n + 100) for n in range(100)]
    load(third)
    print(frozen(third[0]))


def growing():
    """What is added later is not frozen: each dataset is frozen once."""
    data = Data(items=[text(1)])
    load(data)
    data.items.append(text(2))
    data.more = [text(3)]
    load(data)
    print(frozen(data.items[0]), frozen(data.items[1]), frozen(data.more))


def threads():
    """Loaders made at the same time."""
    datasets = [Data(items=[text(n * 1000 + m) for m in range(1000)]) for n in range(8)]
    load(Data())
    makers = [threading.Thread(target=load, args=(data,)) for data in datasets]
    for maker in makers:
        maker.start()
    for maker in makers:
        maker.join()
    print(sum(frozen(data.items) for data in datasets) == 8)


def forks():
    data = Data(items=[text(n) for n in range(1000)])
    load(data)
    for _ in range(2):
        pid = os.fork()
        if pid == 0:
            other = Data(items=[text(n) for n in range(10)])
            os._exit(load(data, look=lambda data: len(data.items)) != 1000 or load(other) != 1 or not frozen(other.items))
        print(os.waitpid(pid, 0)[1])


def interrupted():
    """Ctrl-C while it freezes: it comes when that is over, and nothing is wrong."""
    data = Data(items=[[float(n)] for n in range(3_000_000)])
    load(Data())
    pid = os.getpid()
    killer = os.fork()
    if killer == 0:
        time.sleep(0.05)
        os.kill(pid, signal.SIGINT)
        os._exit(0)
    try:
        load(data)
        time.sleep(1)
        print("late")
    except KeyboardInterrupt:
        print("interrupted")
    os.waitpid(killer, 0)
    print(sum(map(len, data.items)), frozen(data.items), gc.collect() >= 0)


def others():
    """Handles, proxies and the like work on."""
    manager = multiprocessing.Manager()
    data = Data(proxy=manager.dict(a=1), lock=multiprocessing.Lock(), queue=multiprocessing.Queue(), file=open(__file__), event=threading.Event(),
                cache=weakref.WeakValueDictionary(), local=threading.local(), texts=[text(1)])
    load(data)
    with data.lock:
        data.proxy["b"] = 2
    data.event.set()
    data.queue.put(1)
    print(dict(data.proxy), data.queue.get(), len(data.file.readline()) > 0, frozen(data.texts), frozen(data.proxy), frozen(data.lock))
    manager.shutdown()
    data.file.close()


def arrays():
    import numpy

    items = numpy.array([text(n) for n in range(100)], dtype=object)
    data = Data(items=items, square=numpy.array([[text(n), [text(n + 1)]] for n in range(10)], dtype=object)[::2, ::-1],
                floats=[numpy.zeros(10), text(3)], labels=[numpy.int64(1000), numpy.float32(1.5)], empty=numpy.empty(3, dtype=object))
    load(data)
    print(not frozen(items), all(map(frozen, items)), all(frozen(item) for row in data.square for item in row), not frozen(data.floats),
          not frozen(data.floats[0]), frozen(data.labels))


def spawned():
    load(Data(items=[text(1)]), look=len, method="spawn")
    print("done")


def ending():
    """The program ends with frozen objects in its modules, and in objects that end later."""
    global kept
    kept = Data(items=[text(n) for n in range(1000)], ring=[], texts={sys.intern(text(n)): text(n) for n in range(100)}, plain=[Plain(1)])
    kept.ring.append(kept.ring)
    load(kept)
    for item in kept.items[:100]:
        sys.intern(item)
    kept.plain[0].last = Final()
    import atexit

    atexit.register(lambda: print("at exit", len(kept.items), flush=True))
    sys.exit(3)


def speed():
    count = int(os.environ.get("OBJECTS", "0"))
    data = Data(items=[{"name": text(n), "id": n + 1000, "x": n + 0.5, "box": (n + 0.25, n + 0.75)} for n in range(count // 7)])
    load(data)
    print(frozen(data.items))


def owners():
    """Frozen attribute dicts outlive instances that were not frozen, and what is not frozen is freed."""
    watched, called = [Plain(n) for n in range(100)], []
    references = [weakref.ref(plain, called.append) for plain in watched]
    local_class = type("Elsewhere", (Plain,), {})
    objects = [Open(n) for n in range(100)] + watched + [local_class(n) for n in range(100)]
    dicts = [vars(thing) for thing in objects]
    copies = copy.deepcopy(dicts)
    data = Data(objects=objects)
    load(data)
    dicts[0]["box"].append(Open(0))
    print(frozen(dicts[0]["box"]), frozen(objects[0]), Open.count)
    dicts[0]["box"].pop()
    objects.clear()
    watched.clear()
    gc.collect()
    plain = [Plain(-n) for n in range(1000)]  # where they were
    print(Open.count, len(called), references[0]() is None, dicts == copies, len(plain))
    for names in dicts:
        names["more"] = names.pop("name")
        names.clear()


def unpickled():
    """The attribute dicts of instances that have them as objects leave the collector, too."""
    data = Data(items=pickle.loads(pickle.dumps([Plain(n) for n in range(1000)])))
    names = [vars(plain) for plain in data.items]

    def tracked():
        return sum(map(gc.is_tracked, names))
    load(Data())
    print(tracked(), load(data), tracked(), all(map(frozen, data.items)), frozen(vars(data.items[0])))


def graphs():
    """Random objects that refer to each other: what is frozen is what reaches only plain ones. Other counts are as before, and all that is not
    frozen is freed."""
    for seed in range(40):
        pid = os.fork()
        if pid == 0:  # after the first dataset that is dropped, a process freezes no other
            graph(random.Random(seed))
            os._exit(0)
        if os.waitpid(pid, 0)[1] != 0:
            print("seed", seed)
    print("done")


def graph(dice):
    makers = [list, dict, set, Data, Missing, Numbers, collections.deque, collections.OrderedDict, lambda: collections.defaultdict(list),
              lambda: (text(1), 1000)]
    nodes, refers, opened = [], [], set()
    for n in range(dice.choice([5, 50, 500])):
        if dice.random() < 0.05:
            opened.add(n)
        nodes.append(Open(n) if n in opened else dice.choice(makers)())
        refers.append(set())
    for _ in range(2 * len(nodes)):
        n, other = dice.randrange(len(nodes)), dice.randrange(len(nodes))
        node, thing = nodes[n], nodes[other]
        if n in opened or isinstance(node, tuple):
            continue
        if isinstance(node, (list, collections.deque)):
            node.append(thing)
        elif isinstance(node, dict):
            node[text(other)] = thing
        elif isinstance(node, Data):
            setattr(node, f"to_{other}", thing)
        elif isinstance(thing, Data):
            node.add(thing)
        else:
            continue
        refers[n].add(other)
    data = Data(nodes=nodes)
    counts = [sys.getrefcount(nodes[n]) for n in range(len(nodes))]
    load(data)
    while more := {n for n in range(len(nodes)) if refers[n] & opened} - opened:
        opened |= more
    for n, count in enumerate(counts):
        assert frozen(nodes[n]) == (n not in opened), n
        assert n not in opened or sys.getrefcount(nodes[n]) == count, n
    del node, thing
    nodes.clear()
    gc.collect()
    assert Open.count == 0


def changes():
    """Random changes of frozen objects, and the same of copies that are not frozen."""
    data = Data(list=[[n + 0.5, text(n)] for n in range(99)], dict={text(n): [n] for n in range(99)}, set={text(n) for n in range(99)},
                ordered=collections.OrderedDict((text(n), n) for n in range(99)),
                default=collections.defaultdict(list, {text(n): [n] for n in range(99)}), queue=collections.deque(range(1000, 1099)),
                raw=bytearray(99), plain=[Plain(n) for n in range(99)], slots=[Slots(n) for n in range(99)])
    data.keep = list(vars(data).values())
    mirror = Data(**copy.deepcopy(vars(data)))
    load(data)
    kinds_of_change = [
        lambda d, n: d.list.append([text(n)]), lambda d, n: d.list.pop(n % 9), lambda d, n: d.list.__setitem__(slice(n % 9, n % 9 + 2), [[1], [n]]),
        lambda d, n: d.list.reverse(), lambda d, n: d.list.sort(key=str), lambda d, n: d.dict.update({text(n): [n]}),
        lambda d, n: d.dict.pop(text(n), 0),
        lambda d, n: d.set.symmetric_difference_update([text(n)]), lambda d, n: d.ordered.update({text(n): n}),
        lambda d, n: d.ordered.pop(text(n), 0),
        lambda d, n: d.ordered.move_to_end(next(iter(d.ordered))), lambda d, n: d.default[text(n)].append(n), lambda d, n: d.default.pop(text(n), 0),
        lambda d, n: d.queue.append(n), lambda d, n: d.queue.popleft(), lambda d, n: d.queue.rotate(n), lambda d, n: d.raw.extend(b"raw"),
        lambda d, n: d.raw.__delitem__(slice(0, 2)), lambda d, n: setattr(d.plain[n % 99], f"more_{n % 7}", [n]),
        lambda d, n: vars(d.plain[n % 99]).pop(f"more_{n % 7}", 0), lambda d, n: setattr(d.plain[n % 99], "__dict__", dict(vars(d.plain[n % 99]))),
        lambda d, n: setattr(d.slots[n % 99], "first", d.slots[n % 99].first[:20] + text(n)), lambda d, n: sys.intern(d.slots[n % 99].first)]
    dice = random.Random(1)
    for step in range(20000):
        change, n = dice.choice(kinds_of_change), dice.randrange(200)
        change(data, n), change(mirror, n)
        if step % 5000 == 0:
            gc.collect()
    del data.keep, mirror.keep
    states = [[{**vars(d), "plain": list(map(vars, d.plain)), "slots": [(slots.first, slots.second) for slots in d.slots]} for d in (data, mirror)]]
    print(frozen(data.list), states[0][0] == states[0][1], copy.deepcopy(states[0][0]) == states[0][1])


def ranks():
    """Several processes that freeze at the same time."""
    barrier = multiprocessing.Barrier(3)
    processes = []
    for _ in range(3):
        pid = os.fork()
        if pid == 0:
            data = Data(items=[bytes(100_000) for _ in range(400)])
            barrier.wait()
            load(data)
            barrier.wait()
            os._exit(0)
        processes.append(pid)
    print(any(os.waitpid(pid, 0)[1] for pid in processes))


def much():
    """More than may be frozen, in few objects, in one container, in a cycle, and in classes of the program. KIND says which."""
    count = int(os.environ["OBJECTS"])
    kind = os.environ["KIND"]
    if kind == "raw":
        items = [bytes(100_000) for _ in range(count // 1000)]
    elif kind == "set":
        items = {text(n) for n in range(count)}
    elif kind == "keys":
        items = collections.OrderedDict.fromkeys(text(n) for n in range(count))
    elif kind == "words":
        items = [Word(text(n) * 40) for n in range(count // 10)]
    else:
        items = ring = []
        for n in range(count):
            ring.append([float(n)])
            ring = ring[-1]
        ring.append(items)
    data = Data(items=items)
    load(data)
    print(frozen(items))


if __name__ == "__main__":
    with contextlib.suppress(AttributeError):
        multiprocessing.set_start_method("fork")
    globals()[sys.argv[1]]()
