# SPDX-License-Identifier: GPL-3.0-or-later
"""A disk that does not answer, for tests: every request for a file on it waits, until it is gone."""
import contextlib
import ctypes
import os
import select
import struct
import tempfile
import threading

INIT = 26  # FUSE's first request, and the only one that is answered
NOSUID, NODEV, DETACH = 2, 4, 2


def _answer(device):
    """Says to the kernel that the file system is there."""
    while select.select([device], [], [], 10)[0]:
        request = os.read(device, 1 << 17)
        _, code, number = struct.unpack_from("<IIQ", request)
        if code != INIT:
            continue
        minor, readahead = struct.unpack_from("<II", request, 44)
        body = struct.pack("<IIIIHHIIHHI", 7, min(minor, 31), readahead, 0, 12, 9, 1 << 16, 1, 0, 0, 0) + bytes(28)
        os.write(device, struct.pack("<IiQ", 16 + len(body), 0, number) + body)
        return


@contextlib.contextmanager
def stuck_disk():
    """The folder where it is; None where this system lets us mount none. No test may look into it itself."""
    system = ctypes.CDLL(None, use_errno=True)
    folder = tempfile.mkdtemp(prefix="headscope-stuck-")
    device = -1
    mounted = False
    try:
        with contextlib.suppress(OSError):
            device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
            wish = f"fd={device},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()},allow_other"
            mounted = system.mount(b"stuck", folder.encode(), b"fuse", NOSUID | NODEV, wish.encode()) == 0
        if mounted:
            answering = threading.Thread(target=_answer, args=(device,))
            answering.start()
            answering.join()
        yield folder if mounted else None
    finally:
        if mounted:
            system.umount2(folder.encode(), DETACH)
        if device >= 0:
            os.close(device)  # ends requests that still wait
        os.rmdir(folder)
