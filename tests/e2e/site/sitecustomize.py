# SPDX-License-Identifier: Apache-2.0
"""Every Python that the tests start runs this first. It leaves the garbage collector out of the import of PyTorch.

Hundreds of processes import PyTorch, and the collector takes a fifth of their time: it looks at what the import makes again
and again, and once more at the exit, and finds nothing. What is made after the import is collected as always.
"""

import gc
import sys
from importlib.machinery import PathFinder


class TorchFinder(PathFinder):
    @classmethod
    def find_spec(cls, fullname, path=None, target=None):
        spec = super().find_spec(fullname, path, target) if fullname == "torch" else None
        if spec:
            load = spec.loader.exec_module

            def exec_module(module):
                gc.disable()
                try:
                    load(module)
                finally:
                    gc.freeze()
                    gc.enable()

            spec.loader.exec_module = exec_module
        return spec


sys.meta_path.insert(0, TorchFinder)
