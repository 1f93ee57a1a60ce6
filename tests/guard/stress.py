# SPDX-License-Identifier: Apache-2.0
"""Random DataLoaders, every byte of every batch checked: the guard may not lose, mix or hold back anything.

    python3 tests/guard/stress.py --batches 20000 [--seed N] [--seconds N]

Run it under the guard (shmguard run -- python3 tests/guard/stress.py …) or plainly, to see that the test itself is sound. Each round
takes a random loader: sharing strategies of the workers and of the trainer, start method, number of workers, prefetching, persistent
workers or new ones in every epoch, the number and the sizes of the tensors of a batch (around and far from the guard's thresholds), and
how long batches are kept. In some rounds a worker is killed in mid-epoch; in some the trainer forks while it holds batches, lets go of
them, and the child must still find them whole; in some it shares batches that it keeps again, or sends them to another process and back.

A tensor holds int64 words: the batch's number, the tensor's place in the batch and the word's place in the tensor are all in each
word, so that a word from any other batch, tensor or place is seen. Every number must come exactly once, in order.
"""

import argparse
import os
import random
import signal
import sys
import time

import torch
import torch.multiprocessing as mp
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info

PLACE_STRIDE = 1 << 20
NUMBER_STRIDE = 1 << 30
_ARANGE = {}


def positions(words):
    if words not in _ARANGE:
        if len(_ARANGE) > 64:
            _ARANGE.clear()
        _ARANGE[words] = torch.arange(words, dtype=torch.int64)
    return _ARANGE[words]


def words_of(plan, number, place):
    """The size of a tensor; with a jitter it differs from batch to batch."""
    words = plan["words"][place]
    if plan["jitter"]:
        words = max(1, words - (number * 7919 + place * 104729) % max(1, words // plan["jitter"]))
    return words


def first_word(number, place):
    return number * NUMBER_STRIDE + place * PLACE_STRIDE


def text_of(plan, number):
    return b"%08d" % number * (plan["text"] // 8)


def make_batch(plan, number):
    tensors = [positions(words_of(plan, number, place)) + first_word(number, place)
               for place in range(len(plan["words"]))]
    last = tensors[-1]
    return {"number": number, "tensors": tensors, "nested": ([tensors[0][: 3].clone()], number), "view": last[len(last) // 2:],
            "array": last[:100].numpy().copy(),
            "arrays": [tensor.numpy().copy() for tensor in tensors[:plan["arrays"]]], "text": text_of(plan, number)}


def check_batch(plan, batch, number):
    assert batch["number"] == number, f"batch {number} came as {batch['number']}"
    last, view = batch["tensors"][-1], batch["view"]
    assert view.data_ptr() == last.data_ptr() + len(last) // 2 * 8, f"batch {number}: a view has memory of its own"
    assert view.numel() == len(last) - len(last) // 2 and torch.equal(torch.from_numpy(batch["array"]), last[:100]), f"batch {number}"
    assert batch["text"] == text_of(plan, number), f"batch {number}: other bytes"
    for array, tensor in zip(batch["arrays"], batch["tensors"]):
        assert array.flags.writeable and torch.equal(torch.from_numpy(array), tensor), f"batch {number}: another array"
    for place, tensor in enumerate(batch["tensors"]):
        words = words_of(plan, number, place)
        assert tensor.numel() == words, f"batch {number}, tensor {place}: {tensor.numel()} words instead of {words}"
        if not torch.equal(tensor, positions(words) + first_word(number, place)):
            wrong = (tensor - positions(words) - first_word(number, place)).nonzero().flatten()
            at = int(wrong[0])
            value = int(tensor[at])
            raise AssertionError(
                f"batch {number}, tensor {place}: {len(wrong)} of {words} words are wrong, the first at {at}: it belongs to batch "
                f"{value // NUMBER_STRIDE}, tensor {value % NUMBER_STRIDE // PLACE_STRIDE}, word {value % PLACE_STRIDE}")


class Numbers(Dataset):
    def __init__(self, plan):
        self.plan = plan

    def __len__(self):
        return self.plan["batches"]

    def __getitem__(self, number):
        return make_batch(self.plan, number)


class NumberStream(IterableDataset):
    """Worker w of n gives the batches w, w + n, …: the loader takes the workers in turn, so the order is the same."""

    def __init__(self, plan):
        self.plan = plan

    def __iter__(self):
        info = get_worker_info()
        for number in range(info.id, self.plan["batches"], info.num_workers):
            yield make_batch(self.plan, number)


class StartWorker:
    def __init__(self, strategy):
        self.strategy = strategy

    def __call__(self, _worker):
        mp.set_sharing_strategy(self.strategy)
        torch.set_num_threads(1)


def as_it_is(batch):
    """Otherwise PyTorch makes tensors of arrays."""
    return batch


def random_plan(rng, methods, scale):
    sizes = [rng.choice([1, 100, 4096, 60_000, 65_536, 70_000, 131_072, 400_000, 1_000_000]) for _ in range(rng.choice([1, 2, 3, 12]))]
    if rng.random() < 0.4:  # many small ones
        sizes = [rng.choice([1, 7, 100, 400, 1000, 4096, 5000]) for _ in range(rng.randint(4, rng.choice([60, 300])))]
    heavy = sum(sizes) > 300_000
    return {
        "arrays": rng.choice([0, 0, 1, 2]),
        "text": rng.choice([0, 0, 800, 5000, 200_000]),
        "batches": scale * (rng.randint(20, 120) if heavy else rng.randint(100, 600)),
        "words": sizes,
        "jitter": rng.choice([0, 0, 0, 3, 3, 1]),  # by a third, or down to nothing
        "strategy": rng.choice(["file_descriptor", "file_descriptor", "file_system"]),
        "trainer_strategy": rng.choice(["file_descriptor", "file_system"]),
        "method": rng.choice(methods),
        "workers": rng.randint(1, 4),
        "prefetch": rng.randint(1, 4),
        "keep": rng.choice([0, 0, 1, 3, 8]),
        "stream": rng.random() < 0.25,
        "persistent": rng.random() < 0.3,
        "epochs": rng.choice([1, 2, 3]),
        "kill": rng.random() < 0.15,
        "fork": rng.random() < 0.15,
        "again": rng.choice(["", "share", "send"]),
    }


def fork_with(plan, kept):
    """A child that holds what the parent is about to let go of. Gives its pid."""
    # PyTorch's SIGCHLD handler raises its error wherever the trainer happens to be: in the hooks of fork it would be lost.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    pid = os.fork()
    if pid > 0:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
        return pid
    code = 1
    try:
        time.sleep(0.3)
        for number, batch in kept:
            check_batch(plan, batch, number)
        code = 0
    except AssertionError as error:
        print("in a forked child:", error, file=sys.stderr, flush=True)
    finally:
        os._exit(code)


def check_and_return(plan, strategy, orders, answers):
    """Another process: it keeps the last batches that it got, and sends each back."""
    mp.set_sharing_strategy(strategy)
    torch.set_num_threads(1)
    kept = []
    for number, batch in iter(orders.get, None):
        check_batch(plan, batch, number)
        answers.put(batch)
        kept = [*kept[-2:], (number, batch)]
        for entry in kept:
            check_batch(plan, entry[1], entry[0])


class Partner:
    def __init__(self, plan, rng):
        context = mp.get_context(plan["method"])
        self.orders, self.answers = context.SimpleQueue(), context.SimpleQueue()
        strategy = rng.choice(["file_descriptor", "file_system"])
        self.process = context.Process(target=check_and_return, args=(plan, strategy, self.orders, self.answers),
                                       daemon=True)
        self.process.start()

    def send_and_get(self, number, batch):
        self.orders.put((number, batch))
        while not self.answers._reader.poll(1):
            assert self.process.is_alive(), f"the partner ended with {self.process.exitcode}"
        return self.answers.get()

    def end(self):
        self.orders.put(None)
        self.process.join()
        assert self.process.exitcode == 0, f"the partner ended with {self.process.exitcode}"


def share_again(plan, kept, partner, rng):
    """One of the kept batches; it stays what it is."""
    at = rng.randrange(len(kept))
    number, batch = kept[at]
    if partner:
        kept[at] = number, partner.send_and_get(number, batch)
    else:
        for tensor in batch["tensors"]:
            tensor.share_memory_()
    check_batch(plan, kept[at][1], number)


def run_epoch(plan, loader, rng, partner):
    """The number of batches that came. Everything that comes must be right, also when a worker is killed."""
    kept = []
    children = []
    expected = 0
    kill_at = rng.randrange(plan["batches"]) if plan["kill"] else -1
    iterator = iter(loader)
    try:
        for batch in iterator:
            check_batch(plan, batch, expected)
            if plan["keep"]:
                kept.append((expected, batch))
                if len(kept) > plan["keep"]:
                    number, old = kept.pop(rng.randrange(len(kept)))
                    check_batch(plan, old, number)
            if kept and plan["again"] and not plan["kill"] and rng.random() < 0.3:
                share_again(plan, kept, partner, rng)
            if plan["fork"] and kept and rng.random() < 0.02 and len(children) < 3:
                children.append(fork_with(plan, kept))
                kept = []
            del batch
            expected += 1
            if expected == kill_at:
                os.kill(rng.choice(iterator._workers).pid, signal.SIGKILL)
        assert plan["kill"] or expected == plan["batches"], f"{expected} of {plan['batches']} batches came"
    except RuntimeError as error:
        if not (plan["kill"] and "DataLoader worker" in str(error)):  # PyTorch's own words for a worker that died
            raise
    except (ConnectionError, EOFError, FileNotFoundError):
        if not plan["kill"]:
            raise
    # PyTorch's SIGCHLD handler raises its error wherever the trainer happens to be: not in what follows.
    handler = signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for number, batch in kept:
        check_batch(plan, batch, number)
    for child in children:
        _, status = os.waitpid(child, 0)
        assert status == 0, f"a forked child ended with status {status}"
    del iterator
    signal.signal(signal.SIGCHLD, handler)
    return expected


def run_round(plan, rng):
    mp.set_sharing_strategy(plan["trainer_strategy"])
    dataset = NumberStream(plan) if plan["stream"] else Numbers(plan)
    loader = DataLoader(dataset, batch_size=None, num_workers=plan["workers"], prefetch_factor=plan["prefetch"],
                        multiprocessing_context=plan["method"], persistent_workers=plan["persistent"] and not plan["kill"],
                        worker_init_fn=StartWorker(plan["strategy"]), collate_fn=as_it_is, timeout=120)
    # A worker that dies raises an error wherever the trainer happens to be: not amid a talk to a partner.
    partner = Partner(plan, rng) if plan["again"] == "send" and plan["keep"] and not plan["kill"] else None
    done = sum(run_epoch(plan, loader, rng, partner) for _ in range(1 if plan["kill"] else plan["epochs"]))
    if partner:
        partner.end()
    return done


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batches", type=int, default=20_000)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after this time, whatever was reached")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--scale", type=int, default=1, help="that many times as many batches in a round")
    parser.add_argument("--methods", default="fork,fork,fork,fork,spawn,forkserver")
    args = parser.parse_args()
    seed = args.seed if args.seed is not None else int(time.time())
    rng = random.Random(seed)
    torch.set_num_threads(1)
    start = time.monotonic()
    done = rounds = 0
    while done < args.batches and time.monotonic() - start < args.seconds:
        plan = random_plan(rng, args.methods.split(","), args.scale)
        try:
            done += run_round(plan, rng)
        except BaseException:
            print(f"seed {seed}, round {rounds}: {plan}", file=sys.stderr, flush=True)
            raise
        rounds += 1
        if sys.stdout.isatty():
            print(f"\r{done} batches in {rounds} rounds ", end="", flush=True)
    seconds = time.monotonic() - start
    print(f"stress: {done} batches in {rounds} rounds, {seconds:.0f} s, seed {seed}: every byte right, none lost", flush=True)
    os._exit(0)  # Python 3.13 would wait at its end for the managers that killed workers have left


if __name__ == "__main__":
    main()
