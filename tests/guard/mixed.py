# SPDX-License-Identifier: Apache-2.0
"""Processes that share tensors with each other in mixed ways, every byte checked.

    python3 tests/guard/mixed.py --mixture changing --method spawn --tensors 10000 [--peers 3] [--seed N]

Each of several peers makes tensors, sends them to others, keeps some of what it gets, sends those on, shares them again
(share_memory_, which under another strategy swaps the memory inside a living storage) and drops them, in a random order.
The mixtures of sharing strategies:

    same       one strategy for all peers
    peers      each peer has its own
    changing   each peer changes its own all the time

A tensor that was received, kept, shared again or sent on must always hold what its maker wrote. Run it under the guard, or
plainly to see that the test itself is sound.

One thing is left out because PyTorch 1.13 to 2.13 gets it wrong by itself: a peer that got a tensor by name, has moved it to a
descriptor and then to a second name takes another message with the first name for one about the second, and counts one user of
that too few. So a tensor that has left its name in a peer is not given another one there.
"""

import argparse
import random
import sys
import time

import torch
import torch.multiprocessing as mp

from stress import first_word, positions

STRATEGIES = ("file_descriptor", "file_system")
SIZES = (1, 4096, 65_536, 70_000, 70_000, 131_072)  # words: below, at and above the size from which segments are recycled
KEPT_MAX = 24
LAG_MAX = 8  # messages left unread: fewer than a pipe holds


def is_right(number, words, tensor):
    return tensor.numel() == words and torch.equal(tensor, positions(words) + first_word(number, 0))


class Kept:
    def __init__(self, number, words, tensor):
        self.number = number
        self.words = words
        self.tensor = tensor


class Peer:
    def __init__(self, me, args, inboxes, sent):
        self.me = me
        self.args = args
        self.inboxes = inboxes
        self.sent = sent  # how many tensors were ever sent to each peer
        self.rng = random.Random(args.seed * 1000 + me)
        self.kept = []
        self.named = set()  # tensors that have, or had, a name in this process
        self.left_name = set()
        self.made = self.received = self.checked = self.wrong = 0

    def may_be_shared(self, number):
        if mp.get_sharing_strategy() == "file_descriptor":
            self.left_name.update(self.named & {number})
        elif number in self.left_name:
            return False
        else:
            self.named.add(number)
        return True

    def check(self, entry, what):
        self.checked += 1
        if not is_right(entry.number, entry.words, entry.tensor):
            self.wrong += 1
            if self.wrong <= 3:
                print(f"peer {self.me}: {what} tensor {entry.number} of {entry.words} words holds tensor "
                      f"{int(entry.tensor[0]) // first_word(1, 0)}", file=sys.stderr, flush=True)

    def send(self, entry):
        to = self.rng.choice([peer for peer in range(self.args.peers) if peer != self.me])
        named = mp.get_sharing_strategy() == "file_system"
        self.inboxes[to].put((entry.number, entry.words, entry.tensor, named))
        with self.sent.get_lock():
            self.sent[to] += 1

    def make(self):
        number = self.made * self.args.peers + self.me
        words = self.rng.choice(SIZES)
        entry = Kept(number, words, positions(words) + first_word(number, 0))
        self.may_be_shared(number)
        if self.rng.random() < 0.5:
            entry.tensor.share_memory_()
        self.made += 1
        self.send(entry)
        if self.rng.random() < 0.3:
            self.kept.append(entry)

    def touch_kept(self):
        at = self.rng.randrange(len(self.kept))
        entry = self.kept[at]
        action = self.rng.choice(("send", "share", "drop", "look"))
        if action == "drop":
            del self.kept[at]
        elif action != "look" and self.may_be_shared(entry.number):
            if action == "send":
                self.send(entry)
            else:
                entry.tensor.share_memory_()
        self.check(entry, "a kept")

    def receive(self):
        *tensor, named = self.inboxes[self.me].get()
        entry = Kept(*tensor)
        self.received += 1
        if named:
            self.named.add(entry.number)
        self.check(entry, "a received")
        if self.rng.random() < 0.6:
            self.kept.append(entry)
            if len(self.kept) > KEPT_MAX:
                self.check(self.kept.pop(self.rng.randrange(len(self.kept))), "a dropped")

    def choose_strategy(self):
        strategies = {"same": self.args.strategy, "peers": STRATEGIES[(self.me + self.args.seed) % 2],
                      "changing": self.rng.choice(STRATEGIES)}
        mp.set_sharing_strategy(strategies[self.args.mixture])

    def run(self, barrier):
        rounds = self.args.tensors // (self.args.peers * 2)
        for _ in range(rounds):
            self.choose_strategy()
            for _ in range(2):
                self.make()
                if self.kept:
                    self.touch_kept()
            barrier.wait()  # all that was counted in `sent` lies in the pipes, and the pipes hold it
            while self.received < self.sent[self.me] - self.rng.randrange(LAG_MAX):
                self.receive()
        barrier.wait()
        while self.received < self.sent[self.me]:
            self.receive()
        for entry in self.kept:
            self.check(entry, "a kept")


def run_peer(me, args, inboxes, sent, barrier, results):
    torch.set_num_threads(1)
    peer = Peer(me, args, inboxes, sent)
    try:
        peer.run(barrier)
    except BaseException:
        barrier.abort()  # the others need not wait
        raise
    results.put((peer.checked, peer.wrong))
    barrier.wait()  # others may still fetch descriptors from this process


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mixture", choices=("same", "peers", "changing"), default="changing")
    parser.add_argument("--strategy", choices=STRATEGIES, default=STRATEGIES[0], help="of the mixture `same`")
    parser.add_argument("--method", choices=("fork", "spawn", "forkserver"), default="fork")
    parser.add_argument("--tensors", type=int, default=2000)
    parser.add_argument("--peers", type=int, default=3)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    args = parser.parse_args()
    context = mp.get_context(args.method)
    inboxes = [context.SimpleQueue() for _ in range(args.peers)]
    results = context.SimpleQueue()
    sent = context.Array("l", args.peers)
    barrier = context.Barrier(args.peers, timeout=60)  # for when a peer is killed
    peers = [context.Process(target=run_peer, args=(me, args, inboxes, sent, barrier, results)) for me in range(args.peers)]
    for peer in peers:
        peer.start()
    for peer in peers:
        peer.join()
    codes = [peer.exitcode for peer in peers]
    assert codes == [0] * args.peers, f"seed {args.seed}: peers ended with {codes}"
    checked, wrong = map(sum, zip(*(results.get() for _ in peers)))
    assert wrong == 0, f"seed {args.seed}: {wrong} of {checked} tensors are wrong"
    print(f"mixed: {checked} tensors checked, seed {args.seed}: every byte right")


if __name__ == "__main__":
    main()
