/* SPDX-License-Identifier: Apache-2.0 */
/* The catalogue of the advice: each says what to do; the command to paste follows it where there is one. */
#pragma once

#include "language.h"

#define ADVICE_GUARD                                                                                         \
    _("Run the training under the guard: its batches are then kept outside /dev/shm, whose size no longer "  \
      "matters. They still take RAM.")
#define ADVICE_SMALLER_BATCHES                                                                               \
    _("Keep fewer or smaller batches in flight: lower batch_size or num_workers, or give the DataLoader "    \
      "prefetch_factor=1.")

/* --- A larger /dev/shm --- */

#define ADVICE_SHM_CAPPED                                                                                    \
    _("Keep fewer batches in flight in any case: %s of shared memory would be more than half of the memory " \
      "on this machine, so no more than %s is proposed.")
#define ADVICE_SHM_MOUNT             _("Mount a tmpfs there, until the next boot.")
#define ADVICE_SHM_REMOUNT           _("Make /dev/shm larger at once, also for running jobs, until the next boot.")
#define ADVICE_SHM_REMOUNT_CONTAINER _("Make /dev/shm larger at once, for as long as this container runs.")
#define ADVICE_SHM_FSTAB                                                                                     \
    _("Keep that size permanently: add this line to /etc/fstab, in place of an existing line for /dev/shm.")
#define ADVICE_SHM_KUBERNETES                                                                                \
    _("Mount an emptyDir in memory at /dev/shm of the pod. Its contents count against the container's "      \
      "memory limit.")
#define ADVICE_SHM_ENGINE                                                                                    \
    _("Start the container again with a larger /dev/shm, by adding the option to your usual command.")
#define ADVICE_SHM_IF_CONTAINER                                                                              \
    _("If the training runs in a container, start it again with a larger /dev/shm, or with --ipc=host, "     \
      "which shares that of the host.")
#define ADVICE_SHM_IF_KUBERNETES                                                                             \
    _("If it runs in Kubernetes, mount an emptyDir in memory at /dev/shm of the pod. Its contents count "    \
      "against the container's memory limit.")
#define ADVICE_SHM_COMPOSE _("The same in a compose file.")
#define ADVICE_SHM_LXC                                                                                       \
    _("Have this line added to the container's configuration on the host, and the container restarted.")
#define ADVICE_SHM_OTHER_ENGINE                                                                              \
    _("Start the container again with a larger /dev/shm; other engines have a similar option.")
#define ADVICE_SHM_SLURM_OWN                                                                                 \
    _("Have the administrator set the size of each job's /dev/shm, in the script that job_container.conf "   \
      "names as CloneNSScript.")
#define ADVICE_SHM_SLURM _("Ask Slurm for a whole node, so that no other job fills its /dev/shm.")

/* --- /dev/shm that cannot be written, or has too few inodes --- */

#define ADVICE_SHM_PERMISSIONS        _("Allow every user to create files there, as is usual on Linux.")
#define ADVICE_SHM_WRITABLE           _("Make it writable.")
#define ADVICE_SHM_WRITABLE_CONTAINER _("Start the container again with a /dev/shm that is not read-only.")
#define ADVICE_INODES_FEWER                                                                                  \
    _("Send fewer, larger tensors: each one takes an inode, so let collate_fn stack what belongs together.")
#define ADVICE_INODES_REMOUNT _("Allow more files in /dev/shm at once.")
#define ADVICE_INODES_CONTAINER                                                                              \
    _("Start the container again with a /dev/shm that allows more files. By default their number follows "   \
      "the machine's memory; nr_inodes sets it.")

/* --- Memory --- */

#define ADVICE_FEWER_WORKERS                                                                                 \
    _("Lower num_workers first, because each worker has its own memory; then batch_size and "                \
      "prefetch_factor.")
#define ADVICE_MEMORY_SLURM      _("Ask Slurm for more memory. The job's files in /dev/shm count against it.")
#define ADVICE_MEMORY_SLURM_NODE _("Ask Slurm for a whole node, so that no other job uses its memory.")
#define ADVICE_MEMORY_CONTAINER  _("Start the container again with a higher memory limit.")
#define ADVICE_MEMORY_UPDATE                                                                                 \
    _("Have the limit of the running container raised from the host, without a restart.")
#define ADVICE_MEMORY_KUBERNETES _("Give the container of the pod a higher memory limit.")
#define ADVICE_MEMORY_LXC        _("Have the container's memory limit raised on the host.")
#define ADVICE_MEMORY_UNIT       _("Raise the limit of the systemd unit that the job runs in, until the next boot.")
#define ADVICE_SWAP                                                                                          \
    _("Add swap, so that unused pages can be moved out of RAM (not on btrfs; until the next boot).")

/* --- CPUs, open files, mappings, RemoveIPC --- */

#define ADVICE_CPUS_SLURM      _("Ask Slurm for more CPUs.")
#define ADVICE_CPUS_CONTAINER  _("Start the container again with more CPUs.")
#define ADVICE_CPUS_KUBERNETES _("Give the container of the pod more CPUs.")

#define ADVICE_FILES_SHELL                                                                                   \
    _("Raise the limit in the shell or script that starts the training, before it starts.")
#define ADVICE_FILES_BY_NAME                                                                                 \
    _("Share tensors by name, which takes no descriptor per tensor (a killed training then leaves files "    \
      "behind): put this at the top of the script.")
#define ADVICE_FILES_USERS     _("Raise the hard limit for all users, from their next login on.")
#define ADVICE_FILES_CONTAINER _("Start the container again with a higher limit.")
#define ADVICE_FILES_KUBERNETES                                                                              \
    _("Have LimitNOFILE of the node's container runtime raised: a pod cannot ask for it.")
#define ADVICE_FILES_OTHER_ENGINE _("Start the container again with a higher limit of open files.")

#define ADVICE_MAPS_FEWER                                                                                    \
    _("Send fewer, larger tensors, and do not keep batches longer than needed: each tensor in shared "       \
      "memory is a mapping.")
#define ADVICE_MAPS_HOST _("Have more mappings allowed on the host: a container cannot set this.")
#define ADVICE_MAPS_NOW  _("Allow more mappings at once.")
#define ADVICE_MAPS_KEEP _("Keep that after the next boot.")

#define ADVICE_LINGER     _("Tell logind that you stay when you log out.")
#define ADVICE_REMOVE_IPC _("Switch RemoveIPC off for all users.")
