# SPDX-License-Identifier: Apache-2.0
"""Makes reads of a file hang, like reads of /proc/PID/... while the kernel holds a process's memory locked.

stall.py PATH mounts a FUSE file over PATH. It answers one open, and never a read. Processes that wait for a read can be
killed, because the requests stay in the kernel. Prints "ready", then "stalled" when the file was opened. Exits, which
releases the readers, when its standard input ends. Needs root and a private mount namespace.
"""

import ctypes
import os
import struct
import sys

INIT, GETATTR, OPEN = 26, 3, 14
FOREVER = 1 << 30
DIRECT_IO, NO_FLUSH = 1, 1 << 5  # closing the file must not block again

libc = ctypes.CDLL(None, use_errno=True)
path = sys.argv[1].encode()
fuse = os.open("/dev/fuse", os.O_RDWR)
options = f"fd={fuse},rootmode=100444,user_id=0,group_id=0,allow_other".encode()
if libc.mount(b"stall", path, b"fuse", 0, options) != 0:
    sys.exit(f"mount: {os.strerror(ctypes.get_errno())}")
print("ready", flush=True)
while True:
    request = os.read(fuse, 1 << 17)
    _, opcode, unique = struct.unpack_from("<IIQ", request)
    if opcode == INIT:
        major, minor, ahead = struct.unpack_from("<III", request, 40)
        body = struct.pack("<IIIIHHIIHHI28x", major, min(minor, 31), ahead, 0, 8, 4, 1 << 16, 1, 1, 0, 0)
    elif opcode == GETATTR:
        body = struct.pack("<QII", FOREVER, 0, 0) + struct.pack("<6Q10I", 1, 4096, 8, 0, 0, 0, 0, 0, 0, 0o100444, 1, 0, 0, 0, 4096, 0)
    elif opcode == OPEN:
        body = struct.pack("<QIi", 1, DIRECT_IO | NO_FLUSH, 0)
    else:
        body = None
    os.write(fuse, struct.pack("<IiQ", 16 + len(body or b""), 0 if body is not None else -38, unique) + (body or b""))
    if opcode == OPEN:
        break
print("stalled", flush=True)
sys.stdin.read()
