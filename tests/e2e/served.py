# SPDX-License-Identifier: Apache-2.0
"""A running shmguard serve, and requests to it."""

import contextlib
import re
import signal
import socket
import subprocess
import urllib.error
import urllib.request

import pytest

from conftest import PATIENCE, Machine

OPENMETRICS = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"


class Answer:
    def __init__(self, response):
        self.status = response.status
        self.headers = response.headers
        self.body = response.read()

    @property
    def text(self):
        return self.body.decode()


class NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None


class Served:
    def __init__(self, process, first_line):
        self.process = process
        self.first_line = first_line
        self.address = re.search(r"http://([^/]+)/", first_line).group(1)
        self.port = int(self.address.rpartition(":")[2])
        self.url = f"http://127.0.0.1:{self.port}"

    def get(self, path, method="GET", body=None, timeout=20, **headers):
        request = urllib.request.Request(self.url + path, data=body, method=method,
                                         headers={name.replace("_", "-"): value for name, value in headers.items()})
        opener = urllib.request.build_opener(NoRedirect, urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=timeout) as response:
                return Answer(response)
        except urllib.error.HTTPError as error:
            with error:
                return Answer(error)

    def metrics(self):
        """Name with labels → value, of the older format."""
        return samples(self.get("/metrics").text)

    def connect(self, request=b"", receive_bytes=None):
        """A bare connection that has sent this much of a request."""
        connection = socket.socket()
        if receive_bytes:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        connection.settimeout(20)
        connection.connect(("127.0.0.1", self.port))
        connection.sendall(request)
        return connection

    @contextlib.contextmanager
    def stream(self, last_event_id=None):
        """Yields a function that returns the next event as (id, name, data)."""
        head = f"Last-Event-ID: {last_event_id}\r\n" if last_event_id else ""
        with self.connect(f"GET /api/stream HTTP/1.0\r\nHost: localhost\r\n{head}\r\n".encode()) as connection, connection.makefile("rb") as lines:
            assert b" 200 " in lines.readline()
            while lines.readline().strip():
                pass

            def event():
                fields = {}
                while (line := lines.readline()) not in (b"\n", b""):
                    name, _, value = line.decode().rstrip("\n").partition(": ")
                    fields[name] = value
                return (fields["id"], fields["event"], fields["data"]) if "data" in fields else event() if line else None

            yield event


def samples(text):
    rows = (line.rpartition(" ") for line in text.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, _, value in rows}


@contextlib.contextmanager
def serving(*options, machine=None, listen="127.0.0.1:0", code=0, **kwargs):
    machine = machine or Machine()
    arguments = [machine.program, "serve", *(["--listen", listen] if listen else []), *options]
    process = machine.popen(*arguments, stderr=subprocess.PIPE, text=True, **kwargs)
    try:
        lines = []
        while not lines or "Ctrl-C" not in lines[-1]:
            lines.append(process.stderr.readline())
            if "built without libmicrohttpd" in lines[-1]:
                pytest.skip("the program was built without libmicrohttpd: scripts/need build, and build again")
            assert lines[-1], ("serve did not start", lines, process.wait())
        served = Served(process, lines[-1]) if listen else process
        if listen:
            served.lines = lines
        yield served
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == code
        assert process.stderr.read() == ""
    finally:
        process.kill()
        process.wait()
        process.stderr.close()
