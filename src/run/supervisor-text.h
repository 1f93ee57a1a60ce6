/* SPDX-License-Identifier: Apache-2.0 */
/* What the supervisor tells people. Each text follows the name of the option that it is about, or a reason's
 * label, and a colon. */
#pragma once

#include "language.h"

/* --- --degrade and --resume; %s is what the user wrote ---------------------------------------------------
 */

#define DEGRADE_EMPTY_VALUE _("one of the values \"%s\" is empty; write NAME=64,32,16")
#define DEGRADE_NO_VALUES   _("\"%s\" has no values; write NAME=64,32,16")
#define DEGRADE_BAD_NAME                                                                                     \
    _("\"%s\" is not a name; use letters, digits and underscores, and begin with a letter")
#define DEGRADE_REPEATED _("\"%s\" was given before; upper and lower case make no difference")

#define RESUME_NO_ARGUMENTS _("there are no arguments; write --resume '--checkpoint {latest:ckpt/*.pt}'")
#define RESUME_NO_BRACE     _("\"%s\" has no closing brace; write {latest:ckpt/*.pt}")
#define RESUME_NO_GLOB      _("\"%s\" names no files; write {latest:ckpt/*.pt}")
#define RESUME_NO_SHELL                                                                                      \
    _("no shell expands \"%s\"; write the value itself, or use single quotes to keep it as it is")
#define RESUME_BACKSLASH _("\"%s\" ends with a backslash that nothing follows")
#define RESUME_QUOTE     _("\"%s\" has a quote that is not closed")

/* --- --shm: why the job has no /dev/shm of its own ------------------------------------------------------ */

#define SHM_WHY_ABSENT    _("/dev/shm does not exist")
#define SHM_WHY_READ_ONLY _("the shared /dev/shm cannot be written to")
#define SHM_WHY_NOT_TMPFS _("the shared /dev/shm is not a tmpfs")
#define SHM_WHY_FULL      _("the shared /dev/shm has only %s free")
#define SHM_WHY_HIDES     _("it would hide files in /dev/shm that the job may need (%s)") /* one of them */
#define SHM_WHY_LONG_NAME _("one with a long name")                                       /* in its place */
#define SHM_WHY_RANKS     _("%u processes of this job run on this node, and could no longer share memory")
#define SHM_WHY_NO_MEMORY _("its size cannot be chosen, because the amount of free memory is unknown")
#define SHM_WHY_NO_FOLDER _("there is no directory /dev/shm to mount it on")
#define SHM_WHY_CAPABILITY                                                                                   \
    _("it needs CAP_SYS_ADMIN; in a user namespace, the other way, the job would lose its present rights")

#define SHM_WHY_USERNS_OFF   _("user namespaces are switched off here (user.max_user_namespaces is 0)")
#define SHM_WHY_USERNS_LIMIT _("the limit of user namespaces is reached (user.max_user_namespaces)")
#define SHM_WHY_USERNS_NONE  _("this kernel has no user namespaces")
#define SHM_WHY_USERNS_USERS                                                                                 \
    _("user namespaces are switched off for ordinary users (kernel.unprivileged_userns_clone is 0)")
#define SHM_WHY_USERNS_SECCOMP                                                                               \
    _("user namespaces are refused here, most likely by the container's seccomp filter")
#define SHM_WHY_USERNS_APPARMOR                                                                              \
    _("AppArmor gives no rights in user namespaces here (kernel.apparmor_restrict_unprivileged_userns is "   \
      "1)")
#define SHM_WHY_MOUNTS                                                                                       \
    _("mounts are refused here, most likely by the container's AppArmor, SELinux or seccomp profile")

/* %s is what the kernel says: "Operation not permitted". */
#define SHM_FAILED_PROCESS _("no process could be started to try it: %s")
#define SHM_FAILED_USER    _("the user namespace could not be made: %s")
#define SHM_FAILED_IDS     _("the user ids of the user namespace could not be set: %s")
#define SHM_FAILED_MOUNTS  _("the mount namespace could not be made: %s")
#define SHM_FAILED_SPREAD  _("the mounts could not be kept apart from those of the machine: %s")
#define SHM_FAILED_TMPFS   _("the tmpfs could not be mounted on /dev/shm: %s")
#define SHM_FAILED_RIGHTS  _("the rights in the user namespace could not be given up: %s")

/* --- After a crash of the supervisor ---------------------------------------------------------------------
 */

#define CRASH_SAID(signal) "shmguard: internal error (" signal "); the command goes on without the guard\n"

/* --- In the list of processes ------------------------------------------------------------------------------
 */

#define SENTINEL_TITLE "%s: ends the job if process %d is killed" /* the name and the pid of shmguard */
