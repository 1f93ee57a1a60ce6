#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Makes the logs of real failures again. Needs root (mount namespaces, a control group) and two Pythons with PyTorch:
#   capture.sh OUT-DIRECTORY OLD-PYTHON NEW-PYTHON
# Nothing outside of the mount namespaces and of one control group is touched. Texts differ in pids and addresses each time.
set -u
here=$(cd "$(dirname "$0")" && pwd)
out=$1
old=$2
new=$3
mkdir -p "$out"

# log NAME SHM-SIZE PREPARATION COMMAND…: runs the command with a /dev/shm and a working directory of its own.
log() {
    local name=$1 size=$2 before=$3
    shift 3
    unshare -m bash -c '
        mount -t tmpfs -o size="$0" tmpfs /dev/shm
        mkdir -p /tmp/workspace && mount -t tmpfs -o size=70m tmpfs /tmp/workspace
        cp "$1"/*.py /tmp/workspace && cd /tmp/workspace && eval "$2" && shift 2 && exec timeout 90 "$@"
    ' "$size" "$here" "$before" "$@" >"$out/$name.log" 2>&1
    echo "$name: exit $?"
    # Paths of the machine it was made on.
    local prefix
    prefix=$("$new" -c 'import sys; print(sys.prefix)')
    local base
    base=$("$new" -c 'import sys; print(sys.base_prefix)')
    sed -i -e "s|$prefix/|/opt/venv/|g" -e "s|$base/|/usr/local/|g" -e 's|/tmp/workspace/|/workspace/|g' "$out/$name.log"
}

for version in 1.13 2.13; do
    python=$([ $version = 1.13 ] && echo "$old" || echo "$new")
    for method in fork spawn; do
        for strategy in file_descriptor file_system; do
            log torch-$version-small-shm-$method-$strategy 64m : "$python" fail.py batches $method $strategy
        done
    done
    log torch-$version-nearly-full 64m 'fallocate -l 63m /dev/shm/model.bin' "$python" fail.py batches
    log torch-$version-full 64m 'head -c 64m /dev/zero >/dev/shm/model.bin' "$python" fail.py batches
    log torch-$version-open-files 1g 'ulimit -n 64' "$python" fail.py hold
    log torch-$version-open-files-worker 1g 'ulimit -n 64' "$python" fail.py pieces
    log torch-$version-maps 1g : "$python" fail.py maps fork file_system
    for scenario in item collate timeout feeder SIGKILL SIGTERM SIGABRT SIGFPE SIGILL null leave shared_memory attach \
        file checkpoint cpu-memory numpy-memory mapped healthy; do
        log torch-$version-$scenario 64m : "$python" fail.py $scenario
    done
    log torch-$version-inodes 64m 'mount -o remount,nr_inodes=30 /dev/shm' "$python" fail.py pieces
    log torch-$version-inodes-python 64m 'mount -o remount,nr_inodes=4 /dev/shm' "$python" fail.py shared_memory
    log torch-$version-shell 64m : bash -c "$python fail.py shared_memory; exit"
    log torch-$version-faulthandler 64m : "$python" -X faulthandler fail.py shared_memory
    log torch-$version-lambda 64m : "$python" fail.py lambda spawn
    log torch-$version-handle 64m : "$python" fail.py handle spawn
    log torch-$version-deleted 1g : "$python" fail.py delete fork file_system
    log torch-$version-no-guard 64m : "$python" no-guard.py
done

# A worker that eats more than its control group grants (version 1 of control groups), with the kernel's log.
group=/sys/fs/cgroup/memory/log-capture
if mkdir $group 2>/dev/null && echo 600M >$group/memory.limit_in_bytes; then
    mark=$(dmesg | tail -1)
    (echo $BASHPID >$group/cgroup.procs && log torch-2.13-cgroup-oom 64m : "$new" fail.py eat)
    dmesg | grep -A200 -F "$mark" | tail -n +2 | sed -E 's/(Not tainted [0-9.]+)[^ ]*/\1/' >>"$out/torch-2.13-cgroup-oom.log"
    rmdir $group
fi
