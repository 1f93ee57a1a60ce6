# SPDX-License-Identifier: Apache-2.0
"""What shmguard serve costs: 64 training processes among 500, one sample per second, with open pages and a scrape a second.

    python3 bench/serve.py PROGRAM [--training N] [--others N] [--seconds N] [--pages N,N,...]

Prints the share of a core and the memory for each number of open pages, in rounds that alternate between the numbers, then what one
page costs and how far the costs are from a line. Fails when a target is missed.
"""

import argparse
import asyncio
import os
import re
import statistics
import subprocess
import sys
import time

from crowd import cpu_seconds, end_by_signal, end_with_parent
from watch import end, go_alone, start

CPU_TARGET = 0.01
MEMORY_TARGET = 1.25  # of the first round with most pages
LINE_TARGET = 1.5  # what a page costs among many, of what it costs among few


class Load:
    """Pages that read what they get, and a scrape a second."""

    def __init__(self, address):
        self.host, port = address.rsplit(":", 1)
        self.port = int(port)
        self.events = 0
        self.scrapes = []
        self.failed = 0

    async def get(self, path):
        reader, writer = await asyncio.open_connection(self.host, self.port, limit=1 << 24)
        writer.write(f"GET {path} HTTP/1.1\r\nHost: {self.host}\r\n\r\n".encode())
        return reader, writer

    async def page(self):
        try:
            reader, writer = await self.get("/api/stream")
            try:
                while chunk := await reader.read(1 << 16):
                    self.events += chunk.count(b"event: sample")
            finally:
                writer.close()
        except OSError:
            self.failed += 1

    async def scrape(self):
        while True:
            began = time.perf_counter()
            reader, writer = await self.get("/metrics")
            answer = await reader.read(-1)
            writer.close()
            self.scrapes.append(time.perf_counter() - began)
            assert answer.startswith(b"HTTP/1.1 200") and answer.endswith(b"# EOF\n"), answer[:200]
            await asyncio.sleep(max(0.0, 1 - (time.perf_counter() - began)))


def resident(pid, field="VmRSS"):
    with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith(field))


async def measured(serve, address, pages, seconds, scraped=True):
    """The share of a core with so many pages, and the resident memory at the end."""
    load = Load(address)
    tasks = [asyncio.create_task(load.page()) for _ in range(pages)]
    tasks += [asyncio.create_task(load.scrape())] if scraped else []
    await asyncio.sleep(5)  # the histories are sent
    load.events, before, began = 0, cpu_seconds(serve.pid), time.perf_counter()
    await asyncio.sleep(seconds)
    took = time.perf_counter() - began
    share = (cpu_seconds(serve.pid) - before) / took
    memory = resident(serve.pid)
    for task in tasks:
        task.cancel()
    done = await asyncio.gather(*tasks, return_exceptions=True)
    failures = [result for result in done if isinstance(result, Exception) and not isinstance(result, asyncio.CancelledError)]
    if failures or load.failed:
        sys.exit(f"{load.failed} pages failed, and {failures[:1]}")
    if pages and abs(load.events / pages / took - 1) > 0.15:
        sys.exit(f"{pages} pages got {load.events / pages / took:.2f} samples a second, not 1")
    await asyncio.sleep(2)
    return share, memory, load.scrapes


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--training", type=int, default=64)
    parser.add_argument("--others", type=int, default=436)
    parser.add_argument("--seconds", type=int, default=15)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--pages", default="0,50,100,200", help="ascending")
    args = parser.parse_args()
    pages = [int(n) for n in args.pages.split(",")]

    end_by_signal()
    go_alone()
    jobs = start(args.training, args.others)
    serve = subprocess.Popen([args.program, "serve", "--listen", "127.0.0.1:0"], stderr=subprocess.PIPE, text=True, preexec_fn=end_with_parent)
    try:
        address = re.search(r"http://([^/]+)/", serve.stderr.readline()).group(1)
        time.sleep(10)
        alone = asyncio.run(measured(serve, address, 0, 2 * args.seconds, scraped=False))[0]
        results = {n: [] for n in pages}
        for _ in range(args.rounds):
            for n in pages:
                results[n].append(asyncio.run(measured(serve, address, n, args.seconds)))
        peak = resident(serve.pid, "VmHWM")
        processes = sum(name.isdigit() for name in os.listdir("/proc"))
    finally:
        serve.terminate()
        code = serve.wait()
        end(jobs)

    missed = []

    def judge(what, reached, target, good):
        print(f"  {what}: {reached}, target {target}: {'reached' if good else 'MISSED'}")
        if not good:
            missed.append(what)

    print(f"serve: {args.training} training processes among {processes}, a sample a second")
    judge("a core, nobody connected", f"{alone * 100:.2f}%", f"{CPU_TARGET * 100:.0f}%", alone < CPU_TARGET)
    shares = {}
    for n, rounds in results.items():
        shares[n] = statistics.median(share for share, _, _ in rounds)
        scrapes = [seconds for _, _, list_ in rounds for seconds in list_]
        print(f"  {n} pages and a scrape a second: {shares[n] * 100:.2f}% of a core "
              f"(spread {min(r[0] for r in rounds) * 100:.2f} to {max(r[0] for r in rounds) * 100:.2f}), "
              f"{rounds[-1][1] / 2**20:.1f} MiB, a scrape takes {statistics.median(scrapes) * 1e3:.1f} ms (at most {max(scrapes) * 1e3:.0f} ms)")
    few, some, most = pages[0], pages[len(pages) // 2], pages[-1]
    first, last = (shares[some] - shares[few]) / (some - few), (shares[most] - shares[some]) / (most - some)
    judge("a page among many, of one among few", f"{last / first:.2f}", f"{LINE_TARGET}", last / first < LINE_TARGET)
    begin, finish = results[most][0][1], results[most][-1][1]
    judge("memory in the last round, of the first", f"{finish / begin:.2f}", f"{MEMORY_TARGET}", finish / begin < MEMORY_TARGET)
    print(f"  peak memory: {peak / 2**20:.1f} MiB")
    judge("exit code", code, 0, code == 0)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
