# SPDX-License-Identifier: Apache-2.0
"""python -m shmguard: the program, in this process."""
import os
import sys

from ._library import Error, program


def main() -> str:
    try:
        path = program()
    except Error as error:
        return "shmguard: {}".format(error)
    try:
        os.execv(path, [path] + sys.argv[1:])
    except FileNotFoundError:  # the file is there: what is missing is its dynamic linker
        return "shmguard: this program needs glibc, and this system has another C library (musl?)"
    except OSError as error:
        return "shmguard: {}: {}".format(path, error.strerror)


if __name__ == "__main__":
    message = main()
    print(message, file=sys.stderr)
    sys.exit(69)
