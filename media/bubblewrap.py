"""Starts a command behind all layers of the sandbox, and proves from inside that they hold.

Owns the bubblewrap command line. A layer that is missing is a ``SandboxUnavailable``, never a smaller sandbox.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import resource
import select
import shutil
import signal
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from media.command import MIB, Command, Limits
from media.seccomp import filter_bytes
from media.staging import NOBODY, Job, open_job, place_folder, privileged
from media.watch import GRACE_S, Halt, Stopwatch, Tree, Watch, descendants, send_kill
from schemas.errors import SandboxUnavailable

SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

MOST_TMP_FILES = 200_000
"""Entries a run may make in its private /tmp; their kernel memory is not part of any process."""

MOST_PROCESSES_OF_ALL = 16_384
"""Processes of all runs together, as far as they belong to one uid; what one run may have is in its limits."""

SHM_BYTES = 256 * MIB
"""Size of /dev/shm inside."""

DEFAULT_ENV = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": "/tmp",  # noqa: S108
    "TMPDIR": "/tmp",  # noqa: S108
    "LANG": "C.UTF-8",
    "LC_ALL": "C.UTF-8",
    "TZ": "UTC",
}

_SYSTEM_FOLDERS = ("/bin", "/lib", "/lib32", "/lib64", "/libx32", "/sbin")
_SYSTEM_FILES = ("/etc/alternatives", "/etc/fonts", "/etc/ld.so.cache", "/var/cache/fontconfig")

_PIPE_BYTES = 1 << 20
_F_SETPIPE_SZ = 1031


@dataclass(slots=True)
class Launched:
    """A started child, its tree, and how its end is read."""

    child: subprocess.Popen[bytes]
    tree: Tree
    status_fd: int | None
    judge_end: Callable[[Watch, bool], int]
    disk: Callable[[], Halt | None] = lambda: None
    fds: list[int] = field(default_factory=list)

    def judge(self, watch: Watch, *, stopped: bool) -> int:
        """Exit status of the command (128 + n for signal n).

        Raises:
            SandboxUnavailable: the command was never started.
        """
        return self.judge_end(watch, stopped)

    def returncode(self, watch: Watch) -> int:
        """As :meth:`judge` after an early stop."""
        return self.judge_end(watch, True)

    def close(self) -> None:
        """Close descriptors that belong to the launch."""
        for fd in self.fds:
            os.close(fd)
        self.fds.clear()


class _Namespace:
    """The processes of one bubblewrap run: all live in one pid namespace and die with its first process."""

    def __init__(self) -> None:
        self.child: subprocess.Popen[bytes] | None = None
        self.init: int | None = None
        self.exit_code: int | None = None
        self.is_gone = True
        self._init_fd: int | None = None

    def status_line(self, line: bytes) -> None:
        """Read bubblewrap's status: the namespace's first process, and the exit code once the command itself has run."""
        try:
            status = json.loads(line)
        except ValueError:
            return
        if "child-pid" in status and self.init is None:  # the first such line is written before anything foreign runs
            with contextlib.suppress(OSError):
                self._init_fd = os.pidfd_open(int(status["child-pid"]))
                self.init = int(status["child-pid"])
        if "exit-code" in status:
            self.exit_code = int(status["exit-code"])

    def pids(self) -> list[int]:
        if self.init is not None:
            return descendants(self.init)
        return descendants(self.child.pid) if self.child is not None else []

    def kill(self) -> None:
        """Kill the namespace's first process: the kernel ends all others before the launcher can even exit."""
        if self._init_fd is not None:
            send_kill(self._init_fd)
        elif self.child is not None:
            try:
                os.killpg(self.child.pid, signal.SIGKILL)
            except ProcessLookupError:
                self.child.kill()

    def ended(self) -> None:
        """Wait until the namespace is gone.

        The launcher exits when the command itself has, or when a command feigned that; the kernel then kills the namespace, but on
        its own time. Only a dead first process proves that nobody is left who could still write to the outputs.
        """
        if self._init_fd is None:
            return
        send_kill(self._init_fd)
        gone = select.poll()
        gone.register(self._init_fd, select.POLLIN)
        self.is_gone = bool(gone.poll(GRACE_S * 1000))
        os.close(self._init_fd)
        self._init_fd = None

    def tmp_is_crowded(self) -> Halt | None:
        """Whether /tmp inside holds more than :data:`MOST_TMP_FILES` entries (seen through the process's root, where allowed)."""
        if self.init is None:
            return None
        root = f"/proc/{self.init}/root"
        try:
            if os.path.samestat(os.stat(root), os.stat("/")):
                return None  # it has not moved into its own root yet
            held = os.statvfs(f"{root}/tmp")  # noqa: S108
        except OSError:
            return None
        return Halt.TMP if held.f_files - held.f_ffree > MOST_TMP_FILES and held.f_files > 0 else None


def launch(command: Command, job: Job, bound: dict[str, Path], *, capture: bool) -> Launched:
    """Start ``command`` inside.

    Args:
        bound: input name to host file, mounted over the placeholder in ``job.inputs``.
        capture: False where stdout is a stream for a reader; its pipe is then made large.

    Raises:
        SandboxUnavailable: a program of the sandbox is missing.
    """
    drop, bwrap, prlimit = _drop(), find_program("bwrap"), find_program("prlimit")
    outside = limiter(prlimit, command.limits, MOST_PROCESSES_OF_ALL)
    inside = limiter(_inside(prlimit), command.limits, command.limits.processes)
    status_read, status_write = os.pipe2(os.O_CLOEXEC)
    filter_fd = _memory_file("seccomp", filter_bytes())
    args_fd = -1
    try:
        args = _bubblewrap_args(command, job, bound, filter_fd, status_write)
        args_fd = _memory_file("args", b"".join(os.fsencode(arg) + b"\0" for arg in args))
        tree = _Namespace()
        child = subprocess.Popen(  # noqa: S603
            [*drop, *outside, bwrap, "--args", str(args_fd), "--", *inside, *command.argv],
            stdin=subprocess.PIPE if command.stdin is not None else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env={},
            cwd="/",
            pass_fds=(args_fd, filter_fd, status_write),
            start_new_session=True,
            pipesize=-1 if capture else _PIPE_BYTES,
        )
    except OSError as error:
        os.close(status_read)
        raise SandboxUnavailable("launcher", f"the sandbox could not be started: {error}", "run 'workprint doctor'") from error
    except BaseException:
        os.close(status_read)
        raise
    finally:
        for fd in (status_write, filter_fd, args_fd):
            if fd >= 0:
                os.close(fd)
    tree.child = child

    def judge(watch: Watch, stopped: bool) -> int:
        if not tree.is_gone:
            raise SandboxUnavailable(
                "stuck", f"processes of a run are still there {GRACE_S:g} s after they were killed", "look for a hung device or file system"
            )
        if tree.exit_code is not None:
            return tree.exit_code
        if stopped or watch.halt is not None:
            return 128 + signal.SIGKILL
        raise SandboxUnavailable(
            "setup", f"bubblewrap could not set up its layers (exit {watch.returncode}): {_last_line(watch.stderr)}", _SETUP_ADVICE
        )

    return Launched(child, tree, status_read, judge, tree.tmp_is_crowded, [status_read])


_SETUP_ADVICE = (
    "unprivileged user namespaces must be allowed for uid 65534 (in containers: a seccomp and AppArmor profile that permits them); "
    "'workprint doctor' shows which layer is missing"
)


def _bubblewrap_args(command: Command, job: Job, bound: dict[str, Path], filter_fd: int, status_fd: int) -> list[str]:
    """All options of bubblewrap, in the order in which it applies them."""
    args = [
        *("--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup"),
        *("--uid", str(NOBODY), "--gid", str(NOBODY), "--cap-drop", "ALL", "--disable-userns"),
        *("--die-with-parent", "--new-session", "--hostname", "workprint", "--clearenv"),
        *("--seccomp", str(filter_fd), "--json-status-fd", str(status_fd)),
        *("--ro-bind", "/usr", "/usr"),
    ]
    for name in _SYSTEM_FOLDERS:
        path = Path(name)
        if path.is_symlink():
            args += ["--symlink", os.readlink(path), name]
        elif path.is_dir():
            args += ["--ro-bind", name, name]
    for name in _SYSTEM_FILES:
        args += ["--ro-bind-try", name, name]
    args += ["--proc", "/proc", "--dev", "/dev", "--size", str(SHM_BYTES), "--tmpfs", "/dev/shm"]  # noqa: S108
    args += ["--size", str(command.limits.tmp_bytes), "--tmpfs", "/tmp"]  # noqa: S108
    args += ["--ro-bind", str(job.inputs), "/in"]
    for name, path in bound.items():
        args += ["--ro-bind", os.fspath(path), f"/in/{name}"]
    for inside, folder in command.folders.items():
        args += ["--ro-bind", str(place_folder(folder)), inside]
    args += ["--bind", str(job.outputs), "/out", "--chdir", "/out", "--remount-ro", "/dev", "--remount-ro", "/"]
    for key, value in {**DEFAULT_ENV, **command.env}.items():
        args += ["--setenv", key, value]
    return args


def _drop() -> list[str]:
    """What comes first when we are root: become uid 65534 on the host, so that the namespace's owner is nobody too."""
    if not privileged():
        return []
    return [find_program("setpriv"), f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--inh-caps=-all", "--"]


def limiter(prlimit: str, limits: Limits, processes: int) -> list[str]:
    """The command that sets the rlimits and goes on as its arguments say. Never above what the host allows us.

    It runs twice: outside, so that bubblewrap's own first process inside, which a command could take over, is bound too; and inside,
    where the count of processes is this run's own.
    """

    def capped(which: int, wanted: int) -> int:
        hard = resource.getrlimit(which)[1]
        return wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)

    cpu = capped(resource.RLIMIT_CPU, limits.cpu_s + 1)
    return [
        prlimit,
        f"--fsize={capped(resource.RLIMIT_FSIZE, limits.file_bytes)}",
        f"--data={capped(resource.RLIMIT_DATA, limits.data_bytes)}",
        f"--nproc={capped(resource.RLIMIT_NPROC, processes)}",
        f"--nofile={capped(resource.RLIMIT_NOFILE, limits.open_files)}",
        f"--cpu={cpu - 1}:{cpu}",
        f"--core={capped(resource.RLIMIT_CORE, 1)}",  # 1 byte also keeps a core_pattern pipe from being fed
        "--",
    ]


def _inside(program: str) -> str:
    """The path at which a program of the host is found inside, where only the system's own folders are."""
    real = os.path.realpath(program)
    if not real.startswith("/usr/"):
        raise SandboxUnavailable(
            "prlimit_missing", f"'{program}' does not lie in the system's folders", "install the system package util-linux"
        )
    return real


_PACKAGES = {"bwrap": "bubblewrap", "prlimit": "util-linux", "setpriv": "util-linux"}


def find_program(name: str) -> str:
    """Path of a program of the sandbox.

    Raises:
        SandboxUnavailable: it is not on PATH.
    """
    path = shutil.which(name, path=os.environ.get("PATH", SEARCH_PATH))
    if path is None:
        raise SandboxUnavailable(
            f"{name}_missing", f"the program '{name}' is not installed", f"install the system package {_PACKAGES[name]}"
        )
    return path


_INSIDE = r"""
cat /proc/self/status; touch /out/owner
for n in user pid net ipc uts cgroup mnt; do echo "ns_$n" $(readlink /proc/self/ns/$n); done
while read -r line; do echo "net $line"; done < /proc/net/dev
unshare -U /bin/true 2>/dev/null && echo "nested"
for place in "" /usr /in /dev; do touch $place/canary 2>/dev/null && echo "writable $place"; done
[ -e /root ] || [ -e /home ] || [ -e /var/tmp ] && echo "host_visible"
echo "end"
"""


@functools.cache
def verify_layers() -> tuple[str, ...]:
    """Run a look-around inside the full sandbox and compare what it sees with what must hold. Once per process, about 40 ms.

    Returns:
        The layers that were seen to hold, in words.

    Raises:
        SandboxUnavailable: naming the first layer that does not hold.
    """
    command = Command(argv=("/bin/sh", "-c", _INSIDE), limits=Limits(wall_s=20.0, cpu_s=10, tmp_bytes=MIB, stdout_bytes=MIB))
    with open_job() as job:
        launched = launch(command, job, {}, capture=True)
        watch = Watch(
            launched.child,
            launched.tree,
            command.limits,
            Stopwatch(),
            stdin=None,
            capture=True,
            status_fd=launched.status_fd,
            disk=lambda: None,
        )
        try:
            watch.loop()
        finally:
            launched.close()
        code = launched.judge(watch, stopped=False)
        owner = (job.outputs / "owner").lstat().st_uid if code == 0 else -1
    seen = watch.stdout.decode("ascii", "replace")
    if code != 0 or not seen.endswith("end\n"):
        raise SandboxUnavailable("look_around", f"the look-around inside ended with {code}: {_last_line(watch.stderr)}", _SETUP_ADVICE)
    return _judge_layers(seen, owner)


def _judge_layers(seen: str, owner: int) -> tuple[str, ...]:
    """Compare the report from inside with what must hold."""
    lines = seen.splitlines()
    status = {key: value.strip() for key, _, value in (line.partition(":") for line in lines) if key and " " not in key}
    words = {line.split()[0]: line.split()[1:] for line in lines if line.strip()}
    host_uid = NOBODY if privileged() else os.geteuid()
    namespaces = ("user", "pid", "net", "ipc", "uts", "cgroup", "mnt")
    checks: list[tuple[str, bool, str]] = [
        ("unprivileged uid", owner == host_uid, f"a file made inside belongs to uid {owner}"),
        (
            "no capabilities",
            all(int(status.get(c, "1"), 16) == 0 for c in ("CapEff", "CapPrm", "CapInh", "CapBnd", "CapAmb")),
            "capability sets",
        ),
        ("no new privileges", status.get("NoNewPrivs") == "1", f"NoNewPrivs {status.get('NoNewPrivs')}"),
        ("system-call filter", status.get("Seccomp") == "2", f"Seccomp {status.get('Seccomp')}"),
        *((f"{n} namespace", words.get(f"ns_{n}", [""]) != [_own(n)], f"ns_{n} {words.get(f'ns_{n}')}") for n in namespaces),
        ("no network", [line.split()[1] for line in lines if line.startswith("net ") and ":" in line] == ["lo:"], "network interfaces"),
        ("no nested user namespaces", "nested" not in words, "a nested user namespace could be made"),
        (
            "read-only system",
            "writable" not in words,
            "a folder that must be read-only is writable",
        ),
        ("host files hidden", "host_visible" not in words, "host folders are visible"),
    ]
    for layer, holds, what in checks:
        if not holds:
            raise SandboxUnavailable("layer_missing", f"the layer '{layer}' does not hold ({what})", _SETUP_ADVICE)
    return tuple(layer for layer, _, _ in checks)


def _own(namespace: str) -> str:
    return os.readlink(f"/proc/self/ns/{namespace}")


def _memory_file(name: str, content: bytes) -> int:
    fd = os.memfd_create(f"workprint-{name}", os.MFD_CLOEXEC)
    os.write(fd, content)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else "no message"
