/*
 * Breaks the guard on purpose: whoever asks whether a copy is done is told yes. Included in front of its
 * sources, it makes the library that the tests of copies to the GPU must catch.
 */
#pragma once

#define event_query(event) event_query(event) * 0
