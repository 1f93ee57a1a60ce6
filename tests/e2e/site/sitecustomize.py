# SPDX-License-Identifier: Apache-2.0
"""Every Python that the tests start runs this first. It makes the import of PyTorch cheap, for hundreds of processes import it.

The garbage collector takes a fifth of the import: it looks at what the import makes again and again, and once more at the exit,
and finds nothing. What is made after the import is collected as always.

PyTorch 1.13 imports all of itself. What no training here uses is imported when it is first looked at, which no training does.
"""

import gc
import os
import sys
from importlib.machinery import PathFinder

SELDOM_USED = {
    "torch._meta_registrations",  # for tensors without data
    "torch.distributions",
    "torch.hub",
    "torch.masked",
    "torch.nn.quantized",
    "torch.onnx",
    "torch.quantization",
}


class TorchFinder(PathFinder):
    lazy = False

    @classmethod
    def find_spec(cls, fullname, path=None, target=None):
        if fullname == "torch":
            spec = super().find_spec(fullname, path, target)
            if spec:
                load_without_collector(spec.loader)
                cls.lazy = is_1_13(spec)
            return spec
        if cls.lazy and fullname in SELDOM_USED:
            from importlib.util import LazyLoader
            spec = super().find_spec(fullname, path, target)
            spec.loader = LazyLoader(spec.loader)
            return spec
        return None


def load_without_collector(loader):
    load = loader.exec_module

    def exec_module(module):
        gc.disable()
        try:
            load(module)
        finally:
            gc.freeze()
            gc.enable()

    loader.exec_module = exec_module


def is_1_13(spec):
    with open(os.path.join(os.path.dirname(spec.origin), "version.py"), encoding="utf-8") as file:
        return "'1.13." in file.read()


sys.meta_path.insert(0, TorchFinder)
