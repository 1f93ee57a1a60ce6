/* SPDX-License-Identifier: Apache-2.0 */
/* What the sampler tells people about an OOM kill whose victim is not known. */
#pragma once

#define SAMPLER_OOM_IN_GROUP   "%llu in the control group"
#define SAMPLER_OOM_ON_MACHINE "%llu on the machine"
