#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Makes empty libraries in place of those that Debian's PyTorch is linked with and does not use: unlinked.py DIRECTORY

Debian's 1.13 names OpenCV and FFmpeg as needed, without a reference to any symbol of theirs. With all that they need in turn,
each process of a training loads 300 libraries instead of 77, which is half of the time that its import takes. PyTorch's own
builds are not linked with them either. Were one of their symbols needed, the import would fail: libtorch binds them all at once.
"""

import importlib.util
import pathlib
import re
import shutil
import subprocess
import sys

PICTURES_AND_FILMS = r"lib(?:opencv_\w+|av\w+|sw\w+)\.so\.\d+"


def unused_libraries():
    torch = importlib.util.find_spec("torch")
    if torch is None:
        return []
    library = pathlib.Path(torch.origin).with_name("lib") / "libtorch_cpu.so"
    answer = subprocess.run(["ldd", "-u", library], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False, text=True).stdout
    return re.findall(rf"/({PICTURES_AND_FILMS})$", answer, re.M)


def main():
    directory = pathlib.Path(sys.argv[1])
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    for name in unused_libraries():
        subprocess.run(["cc", "-shared", "-nostdlib", f"-Wl,-soname,{name}", "-o", directory / name, "-x", "c", "/dev/null"], check=True)
        print(name)


main()
