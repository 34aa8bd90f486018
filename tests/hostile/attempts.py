"""Runs INSIDE the sandbox (and, as a control, outside): tries one thing after the other and prints what came of it as JSON.

Needs only the standard library. Every attempt is harmless where it succeeds: kernel settings are opened, never written. Each runs in a
forked child, so that a fatal signal is a result like any other.
"""

import ctypes
import errno
import fcntl
import json
import mmap
import os
import platform
import resource
import signal
import socket
import struct
import sys
from collections.abc import Callable

X86 = platform.machine() == "x86_64"
_NR = (
    {
        "ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312, "pidfd_getfd": 438, "mount": 165, "umount2": 166,
        "pivot_root": 155, "chroot": 161, "unshare": 272, "setns": 308, "fsopen": 430, "open_tree": 428, "mount_setattr": 442, "bpf": 321,
        "perf_event_open": 298, "kexec_load": 246, "init_module": 175, "delete_module": 176, "syslog": 103, "io_uring_setup": 425,
        "userfaultfd": 323, "memfd_secret": 447, "keyctl": 250, "add_key": 248, "request_key": 249, "name_to_handle_at": 303,
        "open_by_handle_at": 304, "fanotify_init": 300, "iopl": 172, "ioperm": 173, "swapon": 167, "reboot": 169, "acct": 163,
        "quotactl": 179, "modify_ldt": 154, "settimeofday": 164, "clock_settime": 227, "adjtimex": 159, "sethostname": 170, "shmget": 29,
        "semget": 64, "msgget": 68, "mq_open": 240, "mbind": 237, "personality": 135, "memfd_create": 319, "clone3": 435, "clone": 56,
        "vmsplice": 278, "cachestat": 451, "openat2": 437, "capset": 126, "setgroups": 116, "landlock": 444,
    }
    if X86
    else {}
)  # fmt: skip

_libc = ctypes.CDLL(None, use_errno=True)


class _Failed(Exception):
    """An attempt that the kernel refused."""

    def __init__(self, number: int) -> None:
        super().__init__(errno.errorcode.get(number, str(number)))


def call(name: str, *args: object) -> int:
    """A raw system call; raises with its errno."""
    words = [ctypes.c_long(a) if isinstance(a, int) else a for a in args]
    result = _libc.syscall(ctypes.c_long(_NR[name]), *words)
    if result < 0:
        raise _Failed(ctypes.get_errno())
    return int(result)


def numbered(number: int) -> int:
    result = _libc.syscall(ctypes.c_long(number), 0, 0, 0, 0, 0, 0)
    if result < 0:
        raise _Failed(ctypes.get_errno())
    return int(result)


def opened(path: str, flags: int = os.O_RDONLY) -> str:
    fd = os.open(path, flags | os.O_CLOEXEC)
    os.close(fd)
    return "opened"


def connected(family: int, address: object, kind: int = socket.SOCK_STREAM) -> str:
    with socket.socket(family, kind) as s:
        s.settimeout(2)
        s.connect(address)  # type: ignore[arg-type]
    return "connected"


def made_socket(family: int, kind: int, proto: int = 0) -> str:
    socket.socket(family, kind, proto).close()
    return "made"


def machine_code_32_bit() -> str:
    """getpid through the 32-bit gate (int 0x80), which a filter for 64-bit numbers would misread."""
    code = b"\xb8\x14\x00\x00\x00\xcd\x80\xc3"
    page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(code)
    entry = ctypes.addressof(ctypes.c_char.from_buffer(page))
    return str(ctypes.CFUNCTYPE(ctypes.c_int)(entry)() > 0)


def raised_limit() -> str:
    resource.setrlimit(resource.RLIMIT_CORE, (1, 1))
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (2, 2))
    except ValueError:  # what Python makes of EPERM
        raise _Failed(errno.EPERM) from None
    return "raised"


def nested_namespace() -> str:
    call("unshare", 0x10000000)
    return "made"


def host_processes() -> str:
    me = os.getpid()
    seen = [int(n) for n in os.listdir("/proc") if n.isdigit() and int(n) != me]
    if len(seen) < 12:
        raise _Failed(errno.ESRCH)
    return f"{len(seen)} processes"


def extra_descriptors() -> str:
    """Anything open beyond standard streams and the pipe of this very attempt."""
    extra = []
    for name in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{name}")
        except OSError:
            continue  # the descriptor of the listing itself
        if int(name) > 2 and not target.startswith("pipe:"):
            extra.append(target)
    if not extra:
        raise _Failed(errno.EBADF)
    return ",".join(extra)


def canary_in(paths: list[str], canary: str) -> str:
    for path in paths:
        with open(path, "rb") as f:
            if canary.encode() in f.read():
                return f"found in {path}"
    raise _Failed(errno.ENOENT)


def terminal_injection() -> str:
    fd = os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY)
    fcntl.ioctl(fd, 0x5412, b"x")
    return "injected"


def setuid_bit(folder: str) -> str:
    path = f"{folder}/setuid"
    with open(path, "w"):
        pass
    try:
        os.chmod(path, 0o4755)  # noqa: S103
        return "set"
    finally:
        os.unlink(path)


def created_setuid(folder: str) -> str:
    path = f"{folder}/setuid2"
    fd = os.open(path, os.O_CREAT | os.O_WRONLY, 0o4755)
    mode = os.fstat(fd).st_mode
    os.close(fd)
    os.unlink(path)
    if mode & 0o4000:
        return "set"
    raise _Failed(errno.EPERM)


def made_device(folder: str) -> str:
    path = f"{folder}/device"
    os.mknod(path, 0o600 | 0o020000, os.makedev(1, 3))
    os.unlink(path)
    return "made"


def handle_of(path: bytes) -> int:
    buffer = ctypes.create_string_buffer(struct.pack("Ii", 128, 0) + bytes(128))
    where = ctypes.c_int(0)
    return call("name_to_handle_at", -100, ctypes.c_char_p(path), buffer, ctypes.byref(where), 0)


def perf() -> int:
    attr = ctypes.create_string_buffer(struct.pack("IIQ", 1, 112, 0) + bytes(96))  # software clock
    return call("perf_event_open", attr, 0, -1, -1, 0)


def bpf_map() -> int:
    attr = ctypes.create_string_buffer(struct.pack("IIIII", 2, 4, 4, 1, 0) + bytes(100))
    return call("bpf", 0, attr, 120)


def io_uring() -> int:
    return call("io_uring_setup", 1, ctypes.create_string_buffer(120))


def clone3() -> int:
    args = ctypes.create_string_buffer(struct.pack("8Q", 0x10000000, 0, 0, 0, signal.SIGCHLD, 0, 0, 0))
    pid = call("clone3", args, 64)
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return pid


def clone_new_user() -> int:
    pid = call("clone", 0x10000000 | signal.SIGCHLD, 0, 0, 0, 0)
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return pid


def attempts(given: dict[str, object]) -> dict[str, Callable[[], object]]:
    """Name to attempt. ``given`` has the parent's pid, listeners, canary and folders."""
    parent, folder = int(str(given["pid"])), str(given["folder"])
    tcp, unix, abstract = int(str(given["tcp"])), str(given["unix"]), str(given["abstract"])
    canary = str(given["canary"])
    text = ctypes.c_char_p(b"x")
    tmp = ctypes.c_char_p(b"/tmp")
    todo: dict[str, Callable[[], object]] = {
        # files of the host
        "read host file": lambda: opened(str(given["host_file"])),
        "read /etc/passwd": lambda: opened("/etc/passwd"),
        "read host file through pid 1": lambda: opened("/proc/1/root" + str(given["host_file"])),
        "enter /root": lambda: os.listdir("/root"),
        "enter /sys": lambda: os.listdir("/sys/kernel"),
        "write into /usr": lambda: opened("/usr/.workprint-canary", os.O_WRONLY | os.O_CREAT),
        "write into /": lambda: opened("/.workprint-canary", os.O_WRONLY | os.O_CREAT),
        "write into /in": lambda: opened(f"{given['inputs']}/.workprint-canary", os.O_WRONLY | os.O_CREAT),
        "write over an input": lambda: opened(f"{given['inputs']}/attempts.py", os.O_WRONLY),
        "write into /dev": lambda: opened("/dev/.workprint-canary", os.O_WRONLY | os.O_CREAT),
        # settings of the kernel: opened for writing, never written
        "open core_pattern": lambda: opened("/proc/sys/kernel/core_pattern", os.O_WRONLY),
        "open modprobe": lambda: opened("/proc/sys/kernel/modprobe", os.O_WRONLY),
        "open sysrq-trigger": lambda: opened("/proc/sysrq-trigger", os.O_WRONLY),
        "open kmsg": lambda: opened("/dev/kmsg", os.O_WRONLY),
        # the network
        "connect to loopback": lambda: connected(socket.AF_INET, ("127.0.0.1", tcp)),
        "connect to a unix socket file": lambda: connected(socket.AF_UNIX, unix),
        "connect to an abstract unix socket": lambda: connected(socket.AF_UNIX, "\0" + abstract),
        "send to the world": lambda: connected(socket.AF_INET, ("192.0.2.1", 9), socket.SOCK_DGRAM),
        "make a vsock": lambda: made_socket(40, socket.SOCK_STREAM),
        "make a packet socket": lambda: made_socket(17, socket.SOCK_RAW, 0x0300),
        "make a raw socket": lambda: made_socket(socket.AF_INET, socket.SOCK_RAW, 1),
        "make a crypto socket": lambda: made_socket(38, socket.SOCK_SEQPACKET),
        "make an audit netlink socket": lambda: made_socket(16, socket.SOCK_RAW, 9),
        # other processes
        "signal the parent": lambda: os.kill(parent, 0),
        "see other processes": host_processes,
        "find open descriptors": extra_descriptors,
        "find a secret in an environment": lambda: canary_in(["/proc/self/environ", "/proc/1/environ"], canary),
        "find a host path in a command line": lambda: canary_in([str(given["cmdline"])], canary),
        # rights
        "become root": lambda: os.setresuid(0, 0, 0),
        "raise a limit": raised_limit,
        "set the setuid bit": lambda: setuid_bit(folder),
        "create with the setuid bit": lambda: created_setuid(folder),
        "make a device": lambda: made_device(folder),
        "inject into a terminal": terminal_injection,
    }
    if X86:
        todo |= {
            "trace": lambda: call("ptrace", 0, 0, 0, 0),
            "read memory of a process": lambda: call("process_vm_readv", parent, 0, 0, 0, 0, 0),
            "write memory of a process": lambda: call("process_vm_writev", parent, 0, 0, 0, 0, 0),
            "compare processes": lambda: call("kcmp", os.getpid(), os.getpid(), 0, 0, 0),
            "steal a descriptor": lambda: call("pidfd_getfd", os.pidfd_open(os.getpid()), 0, 0),
            "make a user namespace": nested_namespace,
            "make a user namespace by clone": clone_new_user,
            "make a user namespace by clone3": clone3,
            "enter a namespace": lambda: call("setns", os.open("/proc/self/ns/uts", os.O_RDONLY), 0),
            "mount": lambda: call("mount", text, text, text, 0, 0),
            "mount by the new interface": lambda: call("fsopen", ctypes.c_char_p(b"tmpfs"), 0),
            "clone a mount": lambda: call("open_tree", -100, tmp, 1),
            "unmount": lambda: call("umount2", text, 0),
            "change the root": lambda: call("chroot", tmp),
            "pivot the root": lambda: call("pivot_root", text, text),
            "load a bpf map": bpf_map,
            "open a performance counter": perf,
            "load a kernel": lambda: call("kexec_load", 0, 0, 0, 1 << 30),
            "load a module": lambda: call("init_module", text, 1, text),
            "remove a module": lambda: call("delete_module", ctypes.c_char_p(b"workprint_none"), 0),
            "read the kernel log": lambda: call("syslog", 10, 0, 0),
            "set up io_uring": io_uring,
            "handle page faults": lambda: call("userfaultfd", 1),
            "read a keyring": lambda: call("keyctl", 0, -3, 1),
            "add a key": lambda: call("add_key", ctypes.c_char_p(b"user"), ctypes.c_char_p(b"workprint"), text, 1, -3),
            "take a file handle": lambda: handle_of(b"/tmp"),
            "listen to the file system": lambda: call("fanotify_init", 0x200, 0),
            "reach ports": lambda: call("iopl", 0),
            "change descriptors of the processor": lambda: call("modify_ldt", 0, ctypes.create_string_buffer(16), 16),
            "swap": lambda: call("swapon", text, 0),
            "account": lambda: call("acct", ctypes.c_char_p(b"/nowhere/at/all")),
            "ask for quotas": lambda: call("quotactl", 0x80000100, 0, 0, 0),
            "set the clock": lambda: call("clock_settime", 99, 0),
            "tune the clock": lambda: call("adjtimex", ctypes.create_string_buffer(256)),
            "name the host": lambda: call("sethostname", text, -1),
            "share memory the old way": lambda: call("shmget", 0, 4096, 0o1600),
            "make a semaphore": lambda: call("semget", 0, 1, 0o1600),
            "make a message queue": lambda: call("msgget", 0, 0o1600),
            "make a memory file": lambda: call("memfd_create", text, 0),
            "place memory": lambda: call("mbind", 0, 0, 0, 0, 0, 0),
            "change the personality": lambda: call("personality", 0x0040000),
            "give pages to a pipe": lambda: call("vmsplice", os.pipe()[1], 0, 0, 0),
            "call something newer than known": lambda: numbered(451),
            "call in the x32 way": lambda: numbered(0x40000000 + 39),
            "call in the 32-bit way": machine_code_32_bit,
        }
    return todo


def outcome(attempt: Callable[[], object]) -> str:
    """'OK ...', an errno name, or the signal that ended it."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        signal.alarm(5)
        try:
            text = f"OK {attempt()}"
        except OSError as error:
            text = errno.errorcode.get(error.errno or 0, str(error))
        except _Failed as error:
            text = str(error)
        except Exception as error:  # an attempt that does not fit this machine
            text = f"{type(error).__name__} {error}"
        os.write(write, text.encode()[:200])
        os._exit(0)
    os.close(write)
    text = os.read(read, 300).decode()
    os.close(read)
    _, status = os.waitpid(child, 0)
    return text or (signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else "nothing")


if __name__ == "__main__":
    with open(sys.argv[1]) as file:
        todo = attempts(json.load(file))
    print(json.dumps({name: outcome(attempt) for name, attempt in todo.items()}))
