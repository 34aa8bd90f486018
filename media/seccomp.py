"""The system-call filter of the sandbox, as a BPF program.

Owns which kernel doors stay shut inside the sandbox and why. Must not start processes: :mod:`media.sandbox` hands the bytes to
bubblewrap over a file descriptor. The filter is a refusal list over the calls that every program of ours works without, plus one
general rule: a call newer than those known here does not exist (``ENOSYS``), as on an older kernel.
"""

from __future__ import annotations

import errno
import functools
import importlib
import os
import platform
import struct
from typing import Any

from schemas.errors import SandboxUnavailable

REFUSED: dict[str, tuple[str, ...]] = {
    "other processes": ("ptrace", "process_vm_readv", "process_vm_writev", "kcmp", "pidfd_getfd", "process_madvise"),
    "mounts and roots": (
        *("mount", "umount", "umount2", "pivot_root", "chroot", "move_mount", "open_tree", "mount_setattr"),
        *("fsopen", "fsconfig", "fsmount", "fspick"),
    ),
    "namespaces": ("unshare", "setns"),
    "kernel code and tracing": (
        *("bpf", "perf_event_open", "kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module"),
        *("create_module", "lookup_dcookie", "syslog", "uselib", "_sysctl", "sysfs", "nfsservctl"),
    ),
    "large and young kernel surface": ("io_uring_setup", "io_uring_enter", "io_uring_register", "userfaultfd", "vmsplice", "memfd_secret"),
    "keys": ("keyctl", "add_key", "request_key"),
    "handles that cross mounts": ("open_by_handle_at", "name_to_handle_at", "fanotify_init", "fanotify_mark"),
    "machine": (
        *("iopl", "ioperm", "swapon", "swapoff", "reboot", "acct", "quotactl", "quotactl_fd", "vhangup", "modify_ldt", "vm86", "vm86old"),
        *("settimeofday", "clock_settime", "adjtimex", "clock_adjtime", "stime", "sethostname", "setdomainname"),
    ),
    "memory no watchdog sees": (
        *("memfd_create", "shmget", "shmat", "shmctl", "semget", "semop", "semctl", "semtimedop", "msgget", "msgsnd", "msgrcv", "msgctl"),
        *("mq_open", "mq_unlink", "mbind", "set_mempolicy", "migrate_pages", "move_pages"),
    ),
}
"""Calls refused with EPERM, by reason (``memfd_create`` with ENOSYS, so that programs take their fall-back)."""

NEWEST_CALL = 449
"""Highest call number that exists inside (``futex_waitv``, Linux 5.16); higher ones answer ENOSYS."""

_CLONE_NEW = (0x80, 0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000)
"""CLONE_NEWTIME, NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET."""

_SOCKET_FAMILIES = (1, 2, 10, 16)
"""AF_UNIX, AF_INET, AF_INET6, AF_NETLINK. All others, AF_VSOCK above all, reach past a network namespace or are not needed."""
_AF_NETLINK = 16
_HIGHEST_FAMILY = 16

_TERMINAL_INJECTION = (0x5412, 0x541C)
"""TIOCSTI and TIOCLINUX push input into a terminal."""

_SET_ID_BITS = (0o4000, 0o2000)

_CREATE_FLAGS = (0o100, 0o20000000)
"""O_CREAT and O_TMPFILE."""


@functools.cache
def filter_bytes() -> bytes:
    """The filter as classic BPF (8 bytes an instruction), the form that ``bwrap --seccomp FD`` reads.

    Raises:
        SandboxUnavailable: libseccomp or its Python binding is missing, or this processor is not one the filter is written for.
    """
    if platform.machine() not in ("x86_64", "aarch64"):
        raise SandboxUnavailable(
            "seccomp_architecture",
            f"the system-call filter is written for x86_64 and aarch64, this machine is {platform.machine()}",
            "run on one of those, or name 'process' as the sandbox in the configuration and accept what it lacks",
        )
    try:
        lib = importlib.import_module("pyseccomp")
    except (ImportError, OSError, RuntimeError, AttributeError) as error:
        raise SandboxUnavailable(
            "seccomp_missing",
            f"libseccomp cannot be loaded: {error}",
            "install the system package libseccomp2 and the Python package pyseccomp",
        ) from error
    try:
        program = _export(_build(lib))
    except (OSError, ValueError) as error:
        raise SandboxUnavailable("seccomp_refused", f"libseccomp refused a rule of the filter: {error}", "update libseccomp2") from error
    return _newest_call_guard() + program


def _build(lib: Any) -> Any:
    """All rules as a pyseccomp filter."""
    rules = lib.SyscallFilter(lib.ALLOW)
    eperm, enosys = lib.ERRNO(errno.EPERM), lib.ERRNO(errno.ENOSYS)

    def refuse(name: str, *args: Any, action: Any = eperm) -> None:
        try:
            lib.resolve_syscall(lib.system_arch(), name)
        except ValueError:
            return  # a name this libseccomp is too old to know lies above NEWEST_CALL or on another processor
        rules.add_rule(action, name, *args)

    for names in REFUSED.values():
        for name in names:
            refuse(name, action=enosys if name == "memfd_create" else eperm)

    refuse("clone3", action=enosys)  # its flags lie in memory a filter cannot read; the C library then uses clone
    for bit in _CLONE_NEW:
        refuse("clone", lib.Arg(0, lib.MASKED_EQ, bit, bit))

    no_family = lib.ERRNO(errno.EAFNOSUPPORT)
    for name in ("socket", "socketpair"):
        for family in range(_HIGHEST_FAMILY + 1):
            if family not in _SOCKET_FAMILIES:
                refuse(name, lib.Arg(0, lib.MASKED_EQ, 0xFFFFFFFF, family), action=no_family)
        refuse(name, lib.Arg(0, lib.GT, _HIGHEST_FAMILY), action=no_family)
        # of netlink only the route family (0), by which programs list interfaces
        refuse(name, lib.Arg(0, lib.MASKED_EQ, 0xFFFFFFFF, _AF_NETLINK), lib.Arg(2, lib.NE, 0), action=no_family)

    for request in _TERMINAL_INJECTION:
        refuse("ioctl", lib.Arg(1, lib.MASKED_EQ, 0xFFFFFFFF, request))

    for bit in _SET_ID_BITS:
        refuse("chmod", lib.Arg(1, lib.MASKED_EQ, bit, bit))
        refuse("fchmod", lib.Arg(1, lib.MASKED_EQ, bit, bit))
        refuse("fchmodat", lib.Arg(2, lib.MASKED_EQ, bit, bit))
        refuse("creat", lib.Arg(1, lib.MASKED_EQ, bit, bit))
        refuse("mknod", lib.Arg(1, lib.MASKED_EQ, bit, bit))
        refuse("mknodat", lib.Arg(2, lib.MASKED_EQ, bit, bit))
        for creates in _CREATE_FLAGS:  # without them the mode is not looked at and may be anything
            refuse("open", lib.Arg(1, lib.MASKED_EQ, creates, creates), lib.Arg(2, lib.MASKED_EQ, bit, bit))
            refuse("openat", lib.Arg(2, lib.MASKED_EQ, creates, creates), lib.Arg(3, lib.MASKED_EQ, bit, bit))
    refuse("openat2", action=enosys)  # its mode lies in memory; the C library falls back to openat
    refuse("personality", lib.Arg(0, lib.NE, 0))
    return rules


def _export(rules: Any) -> bytes:
    """The filter's BPF program."""
    fd = os.memfd_create("workprint-seccomp")
    with os.fdopen(fd, "w+b") as file:
        rules.export_bpf(file)
        file.seek(0)
        return file.read()


def _newest_call_guard() -> bytes:
    """Three instructions in front: load the call's number; above :data:`NEWEST_CALL` answer ENOSYS; else go on."""

    def op(code: int, jump_true: int, jump_false: int, k: int) -> bytes:
        return struct.pack("=HBBI", code, jump_true, jump_false, k)

    load_number = op(0x20, 0, 0, 0)
    skip_unless_newer = op(0x25, 0, 1, NEWEST_CALL)
    answer_enosys = op(0x06, 0, 0, 0x00050000 | errno.ENOSYS)
    return load_number + skip_unless_newer + answer_enosys
