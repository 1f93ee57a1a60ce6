/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses what people write about a job: samples, loaders, ranges. Pure and strict. Errors are -EINVAL,
 * -ERANGE (larger than anything real) or -ENOMEM; the first two append one escaped line without newline to
 * `error`. What was parsed lives in arena.
 */
#pragma once

#include "plan.h"
#include "text.h"

enum { PLAN_FIELDS_MOST = 256, PLAN_DIMENSIONS_MOST = 64 };

/* The bytes of "float32[3,224,224]", or of "int64": one number per sample. "torch." may come first, and
 * blanks may stand between the parts. Knows every dtype of PyTorch by all of its names. */
int plan_sample_parse(Text text, uint64_t *ret_bytes, Buffer *error);

/* Adds a field to the loader. */
int plan_loader_add(PlanLoader *loader, Text sample, Arena *arena, Buffer *error);

/*
 * "sample=float32[3,224,224];sample=int64;batch=64;workers=4;prefetch=2;held=1;collate=stack", in any order,
 * or "bytes=32MiB" in place of the samples. What is missing is taken from `usual`.
 */
int plan_loader_parse(Text text, const PlanLoader *usual, Arena *arena, PlanLoader *ret, Buffer *error);

/* "6" or "1..12". */
int plan_range_parse(Text text, uint64_t *ret_first, uint64_t *ret_last, Buffer *error);

/* A whole number from 1 to most. */
int plan_count_parse(Text text, uint64_t most, uint64_t *ret, Buffer *error);

/* A size of at least one byte. */
int plan_size_parse(Text text, uint64_t *ret_bytes, Buffer *error);

/* "1.3": from 1 to PLAN_MARGIN_MOST. */
int plan_margin_parse(Text text, double *ret, Buffer *error);
