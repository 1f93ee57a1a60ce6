# SPDX-License-Identifier: Apache-2.0
"""Writes texts in Python as C arrays: embed.py OUTPUT HEADER TEXT..."""
import pathlib
import sys


def array(path):
    text = path.read_bytes()
    rows = (", ".join(map(str, text[start : start + 24])) for start in range(0, len(text), 24))
    return f"const char python_{path.stem.replace('-', '_')}[] = {{\n    " + ",\n    ".join(rows) + ", 0};\n"


output, header, *texts = sys.argv[1:]
pathlib.Path(output).write_text(f'#include "{header}"\n' + "".join(array(pathlib.Path(text)) for text in texts))
