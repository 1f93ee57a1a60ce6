# SPDX-License-Identifier: Apache-2.0
"""Two nodes on one machine: connected network namespaces, each with a host name, a /dev/shm and a memory group of its own."""

import contextlib
import subprocess
import sys

import pytest

from conftest import HERE, Machine, control_group

JOB = HERE / "node_job.py"
ADDRESSES = "10.213.0.1", "10.213.0.2"
HOSTS = "\n".join(["127.0.0.1 localhost", *(f"{address} node-{number}" for number, address in enumerate(ADDRESSES))])


@contextlib.contextmanager
def node_namespace(number):
    """A machine that is called node-NUMBER. A sleeping process keeps it alive."""
    holder = subprocess.Popen(["unshare", "-m", "-n", "-u", "--propagation", "private", "sh", "-ec",
                               f"hostname node-{number}\nmount -t tmpfs tmpfs /mnt\necho '{HOSTS}' > /mnt/hosts\n"
                               f"mount --bind /mnt/hosts /etc/hosts\nmount -t tmpfs -o size=512m tmpfs /dev/shm\nip link set lo up\n"
                               "echo ready\nexec sleep 3600"], stdout=subprocess.PIPE)
    try:
        if holder.stdout.readline() != b"ready\n":
            pytest.skip("no network namespace can be made here")
        yield Machine(["nsenter", "-t", str(holder.pid), "-m", "-n", "-u", "--wdns=/"], holder.pid)
    finally:
        holder.kill()
        holder.wait()
        holder.stdout.close()


@contextlib.contextmanager
def two_nodes(limits=(None, None)):
    """Yields both machines, with memory groups of these limits."""
    with contextlib.ExitStack() as stack:
        nodes = [stack.enter_context(node_namespace(number)) for number in range(2)]
        nodes[0].run("ip", "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", str(nodes[1].pid))
        for node, address in zip(nodes, ADDRESSES):
            done = node.run("sh", "-ec", f"ip addr add {address}/24 dev eth0; ip link set eth0 up")
            if done.returncode != 0:
                pytest.skip(f"no pair of network devices can be made here: {done.stderr.decode()}")
        yield [stack.enter_context(control_group(node, limit))[0] if limit else node for node, limit in zip(nodes, limits)]


def torchrun(python, number, *options, ranks=1):
    """The words that start one node's ranks."""
    return ["env", "GLOO_SOCKET_IFNAME=eth0", "OMP_NUM_THREADS=1", python, "-m", "torch.distributed.run", "--nnodes=2",
            f"--nproc_per_node={ranks}", "--rdzv_backend=c10d", f"--rdzv_endpoint={ADDRESSES[0]}:29400", f"--local_addr={ADDRESSES[number]}",
            *options]


def finish(jobs, seconds):
    """Their exit codes and what they wrote to standard error."""
    try:
        return [(job.wait(seconds), job.stderr.read().decode()) for job in jobs]
    finally:
        for job in jobs:
            if job.poll() is None:
                job.terminate()
                job.wait(30)
            job.stderr.close()
            sys.stdout.flush()
