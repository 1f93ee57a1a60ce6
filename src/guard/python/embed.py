# SPDX-License-Identifier: Apache-2.0
"""Writes texts as C arrays, for the preload library: embed.py OUTPUT TEXT..."""
import pathlib
import sys


def array(path):
    text = path.read_bytes()
    rows = (", ".join(map(str, text[start : start + 24])) for start in range(0, len(text), 24))
    return f"const char python_{path.stem}[] = {{\n    " + ",\n    ".join(rows) + ", 0};\n"


output, *texts = map(pathlib.Path, sys.argv[1:])
output.write_text('#include "python-part.h"\n' + "".join(map(array, texts)))
