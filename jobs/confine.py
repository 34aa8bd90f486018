"""A network of its own for a private Ray: only loopback, reachable from no other process of the machine.

Owns entering and leaving the namespace. Must not start processes; children inherit the namespace from the thread that starts them.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager

_NEWNET = 0x40000000
_SIOCGIFFLAGS, _SIOCSIFFLAGS = 0x8913, 0x8914
_IFF_UP = 0x1
_REQUEST = "16sH14x"
"""``struct ifreq`` with the flags member of its union."""


class NetworkNotPrivate(OSError):
    """The kernel does not let this process have a network namespace."""


@contextmanager
def private_network() -> Iterator[None]:
    """Run the calling thread, and all that it starts meanwhile, in a new network namespace with loopback up.

    The thread is back in its old namespace afterwards. Other threads never leave theirs.

    Raises:
        NetworkNotPrivate: no permission (it needs root, or CAP_SYS_ADMIN); nothing has changed then.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        if libc.unshare(_NEWNET) != 0:
            number = ctypes.get_errno()
            raise NetworkNotPrivate(number, os.strerror(number))
        try:
            _loopback_up()
            yield
        finally:
            if libc.setns(home, _NEWNET) != 0:
                number = ctypes.get_errno()
                raise OSError(number, f"cannot return to the network of the machine: {os.strerror(number)}")
    finally:
        os.close(home)


def can_be_private() -> tuple[bool, str]:
    """Whether :func:`private_network` works here, and why not. Tries it in passing."""
    try:
        with private_network():
            return True, "yes"
    except OSError as error:
        name = errno.errorcode.get(error.errno or 0, "?")
        return False, f"no ({name}: {error.strerror})"


def _loopback_up() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as door:
        asked = struct.pack(_REQUEST, b"lo", 0)
        (_, flags) = struct.unpack(_REQUEST, fcntl.ioctl(door, _SIOCGIFFLAGS, asked))
        fcntl.ioctl(door, _SIOCSIFFLAGS, struct.pack(_REQUEST, b"lo", flags | _IFF_UP))
