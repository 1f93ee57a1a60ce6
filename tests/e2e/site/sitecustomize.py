# SPDX-License-Identifier: Apache-2.0
"""Every Python that the tests start runs this first. It makes the import of PyTorch cheap, for hundreds of processes import it.

The garbage collector takes a fifth of the import: it looks at what the import makes again and again, and once more at the exit,
and finds nothing. What is made after the import is collected as always.

PyTorch imports all of itself. What no training here uses is imported when it is first looked at, which no training does.

PyTorch 2.13 asks for each operator which source line registers it, for which Python looks at all modules and their files: this
takes a sixth of the import. Here, it is the module whose globals the caller has. And its optimizers import the compiler, which
takes as long as all the rest, to tell it what not to compile. Here, the compiler is imported when it is asked for more than that.

test_semantics.py runs its cases without all this.
"""

import gc
import os
import sys
from importlib.machinery import PathFinder

SELDOM_USED = {
    "torch.distributions",
    "torch.export",
    "torch.hub",
    "torch.masked",
    "torch.nn.quantized",
    "torch.onnx",
    "torch.quantization",
}
SELDOM_USED_BY_1_13 = {"torch._meta_registrations"}  # for tensors without data


class TorchFinder(PathFinder):
    is_1_13 = False

    @classmethod
    def find_spec(cls, fullname, path=None, target=None):
        if fullname == "torch":
            spec = super().find_spec(fullname, path, target)
            if spec:
                load_quickly(spec.loader)
                cls.is_1_13 = names_1_13(spec)
            return spec
        if fullname == "torch._dynamo":
            spec = super().find_spec(fullname, path, target)
            if spec:
                spec.loader = CompilerLater(spec.loader)
            return spec
        if fullname.startswith("torch._dynamo."):
            CompilerLater.load(sys.modules["torch._dynamo"])
            return None
        if fullname in SELDOM_USED or cls.is_1_13 and fullname in SELDOM_USED_BY_1_13:
            from importlib.util import LazyLoader
            spec = super().find_spec(fullname, path, target)
            spec.loader = LazyLoader(spec.loader)
            return spec
        return None


def names_1_13(spec):
    with open(os.path.join(os.path.dirname(spec.origin), "version.py"), encoding="utf-8") as file:
        return "'1.13." in file.read()


def load_quickly(loader):
    load = loader.exec_module

    def exec_module(module):
        import functools
        import inspect
        getmodule, getframeinfo = inspect.getmodule, inspect.getframeinfo

        def module_of(thing, *more):
            return sys.modules.get(thing.f_globals["__name__"]) if inspect.isframe(thing) else getmodule(thing, *more)

        inspect.getmodule, inspect.getframeinfo = module_of, functools.partial(getframeinfo, context=0)
        gc.disable()
        try:
            load(module)
        finally:
            inspect.getmodule, inspect.getframeinfo = getmodule, getframeinfo
            gc.freeze()
            gc.enable()

    loader.exec_module = exec_module


class CompilerLater:
    def __init__(self, loader):
        self.loader = loader

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        module.disable = lambda function, *options, **more: function
        module.graph_break = lambda: None
        module.__getattr__ = lambda name: getattr(self.load(module), name)

    @staticmethod
    def load(module):
        if "__getattr__" in vars(module):
            del module.__getattr__
            module.__spec__.loader.loader.exec_module(module)
        return module


sys.meta_path.insert(0, TorchFinder)
