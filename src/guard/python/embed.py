# SPDX-License-Identifier: Apache-2.0
"""Writes a text as a C array, for the preload library: embed.py TEXT OUTPUT"""
import pathlib
import sys

text = pathlib.Path(sys.argv[1]).read_bytes()
rows = (", ".join(map(str, text[start : start + 24])) for start in range(0, len(text), 24))
name = pathlib.Path(sys.argv[1]).stem
pathlib.Path(sys.argv[2]).write_text(
    f'#include "guard.h"\nconst char python_{name}[] = {{\n    ' + ",\n    ".join(rows) + ", 0};\n")
