# SPDX-License-Identifier: Apache-2.0
"""shmguard keeps PyTorch training alive. The program does the work; this package finds it."""
import os

__all__ = ["program"]


def program() -> str:
    """The path of the shmguard program that was installed together with this package."""
    directory = os.path.dirname(os.path.abspath(__file__))
    # Environments differ in how deep packages lie, but all have a bin above them; with pip's --target it is beside them.
    while directory != os.path.dirname(directory):
        directory = os.path.dirname(directory)
        path = os.path.join(directory, "bin", "shmguard")
        if os.path.isfile(path):
            return path
    raise FileNotFoundError("the shmguard program is missing; reinstall the package: pip install --force-reinstall shmguard")
