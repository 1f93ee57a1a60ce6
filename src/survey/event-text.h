/* SPDX-License-Identifier: Apache-2.0 */
/* What the events of a history say. A recording keeps these texts, so they are always English. */
#pragma once

#define EVENT_EXIT_CODE      "exit code %d"
#define EVENT_OOM_VICTIM     "%s (pid %d)" /* the name of the process */
#define EVENT_OOM_IN_GROUP   "%llu in the control group"
#define EVENT_OOM_ON_MACHINE "%llu on the machine"
