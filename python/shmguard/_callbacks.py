# SPDX-License-Identifier: Apache-2.0
"""A Monitor as a callback of the frameworks, which are imported here and nowhere else. Only one process of a node marks."""
import importlib
import sys
from typing import Any

from ._library import Error
from ._monitor import Monitor


def _module(name: str, *others: str) -> Any:
    """The module that the script uses, or else the first that is installed."""
    for candidate in sorted((name,) + others, key=lambda candidate: candidate not in sys.modules):
        try:
            return importlib.import_module(candidate)
        except ImportError:
            pass
    package = name.split(".")[0]
    raise Error("{} is not installed: pip install {}".format(package, package), 69)


def lightning_callback(monitor: Monitor) -> Any:
    class LightningMonitor(_module("lightning.pytorch", "pytorch_lightning").Callback):  # type: ignore[misc]
        def on_train_start(self, trainer: Any, pl_module: Any) -> None:
            if trainer.local_rank == 0:
                monitor.start()

        def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
            monitor.epoch(trainer.current_epoch)

        def on_train_batch_end(self, trainer: Any, *_: Any, **__: Any) -> None:
            monitor.step(trainer.global_step)

        def on_train_end(self, trainer: Any, pl_module: Any) -> None:
            monitor.close()

        def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
            monitor.close()

    return LightningMonitor()


def transformers_callback(monitor: Monitor) -> Any:
    class TransformersMonitor(_module("transformers").TrainerCallback):  # type: ignore[misc]
        def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if state.is_local_process_zero:
                monitor.start()

        def on_epoch_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            monitor.epoch(int(state.epoch or 0))

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            monitor.step(state.global_step)

        def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            monitor.close()

    return TransformersMonitor()
