# SPDX-License-Identifier: Apache-2.0
"""Reads catalogues of gettext (*.po, *.pot). Python 3.6, without packages: the build uses it."""
import re
from collections import namedtuple

# sources: the files that have the text. placeholders: "c-format" or None.
Entry = namedtuple("Entry", "english text fuzzy sources format")
Entry.is_of_page = property(lambda entry: any(source.startswith("web/") for source in entry.sources))

ESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\"}


def unquoted(line):
    return re.sub(r"\\(.)", lambda match: ESCAPES[match.group(1)], line[line.index('"') + 1 : line.rindex('"')])


def entries_read(path):
    """All entries in their order, the header included, whose English is empty. Obsolete ones (#~) are left out."""
    entries = []
    for block in re.split(r"\n\s*\n", path.read_text(encoding="utf-8")):
        parts = {"msgid": "", "msgstr": ""}
        sources, flags, part = [], "", None
        for line in block.splitlines():
            if line.startswith("#:"):
                sources += [word.split(":")[0] for word in line[2:].split()]
            elif line.startswith("#,"):
                flags += line[2:]
            elif line.startswith(("msgid ", "msgstr ")):
                part = line.split(" ")[0]
                parts[part] = unquoted(line)
            elif line.startswith('"') and part:
                parts[part] += unquoted(line)
        if part:
            form = "c-format" if "c-format" in flags.replace("no-c-format", "") else None
            entries.append(Entry(parts["msgid"], parts["msgstr"], "fuzzy" in flags, sources, form))
    return entries
