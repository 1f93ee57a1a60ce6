# SPDX-License-Identifier: Apache-2.0
"""Marks in the recording of a run, and warnings before memory is used up."""
import contextlib
import json
import logging
import os
import queue
import subprocess
import threading
import time
from typing import Any, Dict, List, Optional, Tuple

from ._library import Error, program

logger = logging.getLogger("shmguard")


class Monitor:
    """Marks epochs and steps in the recording of `shmguard run --record` (or `record`), and warns by logging ("shmguard") when memory is
    going to be used up within `warn_seconds`.

        with shmguard.Monitor() as monitor:
            for epoch in range(10):
                monitor.epoch(epoch)
                for batch in loader:
                    …
                    monitor.step()

    A thread writes the marks, so that the training never waits for a disk. Steps are marked at most every `step_seconds`, and the recording is
    judged every `check_seconds`, by the program, in a process of its own. Without a recording, a monitor does nothing."""

    def __init__(self, recording: Optional[str] = None, step_seconds: float = 60.0, check_seconds: float = 60.0, warn_seconds: float = 1800.0) -> None:
        self.recording = recording or os.environ.get("SHMGUARD_RECORDING")
        self._step_seconds, self._check_seconds, self._warn_seconds = step_seconds, check_seconds, warn_seconds
        self._marks: "queue.Queue[Optional[Tuple[float, str]]]" = queue.Queue()
        self._thread: Optional[threading.Thread] = None
        self._steps = 0
        self._step_marked = float("-inf")
        self._warned: Dict[Tuple[str, int], float] = {}  # the time that was left at the last warning

    def start(self) -> None:
        if self._thread is None and self.recording is None:
            logger.info("there is no recording to mark; start the training with: shmguard run --record run.db -- python train.py")
        elif self._thread is None:
            self._thread = threading.Thread(target=self._work, name="shmguard-monitor", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Writes the last marks."""
        if self._thread is not None:
            self._marks.put(None)
            self._thread.join(10)
            self._thread = None

    def __enter__(self) -> "Monitor":
        self.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def mark(self, text: str) -> None:
        """Marks this moment."""
        if self._thread is not None:
            self._marks.put((time.time(), text))

    def epoch(self, number: int) -> None:
        """An epoch begins. `report` judges what grows within an epoch by these marks."""
        self.mark("epoch {}".format(number))

    def step(self, number: Optional[int] = None) -> None:
        """A step has ended; without a number, steps are counted."""
        self._steps = self._steps + 1 if number is None else number
        now = time.monotonic()
        if now - self._step_marked >= self._step_seconds:
            self._step_marked = now
            self.mark("step {}".format(self._steps))

    # In the thread.

    def _work(self) -> None:
        check = time.monotonic() + self._check_seconds
        while True:
            try:
                mark = self._marks.get(timeout=max(check - time.monotonic(), 0))
            except queue.Empty:
                check = time.monotonic() + self._check_seconds
                self._check()
                continue
            if mark is None:
                return
            self._write(*mark)

    def _write(self, when: float, text: str) -> None:
        try:
            import sqlite3
        except ImportError:  # a Python that was built without it
            logger.debug("%s: the mark \"%s\" was lost: this Python has no sqlite3", self.recording, text)
            return
        try:
            with contextlib.closing(sqlite3.connect(str(self.recording), 5)) as recording, recording:
                recording.execute("INSERT INTO mark(time, text) VALUES (?, ?)", [when, text])
        except sqlite3.Error as error:
            logger.debug("%s: the mark \"%s\" was lost: %s", self.recording, text, error)

    def _verdicts(self) -> List[Dict[str, Any]]:
        # Not by the library: a second SQLite in this process would lose the locks of Python's.
        done = subprocess.run([program(), "report", "--json", str(self.recording)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, universal_newlines=True, check=False)
        if done.returncode != 0:
            raise Error(done.stderr.strip(), done.returncode)
        found: List[Dict[str, Any]] = json.loads(done.stdout)["verdicts"]
        return found

    def _check(self) -> None:
        try:
            verdicts = self._verdicts()
        except (Error, OSError, ValueError) as error:
            logger.debug("%s: no forecast: %s", self.recording, error)
            return
        for verdict in verdicts:
            left, subject = verdict["exhausts_in"], verdict["subject"]
            about = verdict["id"], subject["pid"]
            # Again only when half of the time has passed: a warning that is repeated every minute is not read.
            if left is None or left > self._warn_seconds or left > self._warned.get(about, float("inf")) / 2:
                continue
            self._warned[about] = left
            logger.warning("%s: at this rate the limit is reached in %.0f min (estimated). %s Next: shmguard report %s", verdict["id"],
                           left / 60, verdict["evidence"], self.recording)

    # Frameworks are imported only when they are asked for.

    def lightning(self) -> Any:
        """A callback for Lightning: Trainer(callbacks=[shmguard.Monitor().lightning()])."""
        from ._callbacks import lightning_callback
        return lightning_callback(self)

    def transformers(self) -> Any:
        """A callback for Hugging Face's Trainer: Trainer(callbacks=[shmguard.Monitor().transformers()])."""
        from ._callbacks import transformers_callback
        return transformers_callback(self)
