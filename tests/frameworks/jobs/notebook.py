# SPDX-License-Identifier: Apache-2.0
"""A person at a notebook, by Jupyter's own client: notebook.py KERNEL. Prints what the cells print."""

import sys
import threading

from jupyter_client.manager import start_new_kernel


class Notebook:
    def __init__(self, kernel):
        self.manager, self.client = start_new_kernel(kernel_name=kernel, startup_timeout=60)

    def cell(self, code):
        def show(message):
            print(message["content"].get("text") or message["content"].get("ename") or "", end="", flush=True)
        status = self.client.execute_interactive(code, timeout=60, output_hook=show)["content"]["status"]
        print(status, flush=True)

    def interrupt(self):
        self.manager.interrupt_kernel()

    def restart(self):
        self.manager.restart_kernel(now=True)
        self.client.wait_for_ready(60)

    def close(self):
        self.client.stop_channels()
        self.manager.shutdown_kernel()


def main():
    notebook = Notebook(sys.argv[1])
    notebook.cell("import shmguard.auto; print('guarded:', shmguard.is_guarded()); kept = 1")
    threading.Timer(1, notebook.interrupt).start()
    notebook.cell("import time; time.sleep(60)")
    notebook.cell("print(kept)")
    notebook.restart()
    notebook.cell("print(kept)")
    notebook.close()


if __name__ == "__main__":
    main()
