"""What a process that runs an answer takes from itself before it reads the answer: time, memory, files, processes, the network, signals.

Limits are the kernel's, for this process: they cannot be raised again. System calls are refused by a filter (seccomp), which stays until the process ends: one that no answer needs
ends the process, so that the grader can say so. Only the standard library is used here.
"""

from __future__ import annotations

import faulthandler
import math
import os
import platform
import signal
import struct
import sys

FILE_BYTES = 16_000_000
"""The most that an answer may write to one file, its prints among them."""
# A call's number on x86_64 and on aarch64; None where there is none.
_ENDS = {
    "fork": (57, None), "vfork": (58, None), "clone": (56, 220), "clone3": (435, 435), "execve": (59, 221), "execveat": (322, 281),
    "socket": (41, 198), "socketpair": (53, 199), "kill": (62, 129), "tkill": (200, 130), "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240), "pidfd_open": (434, 434), "pidfd_send_signal": (424, 424),
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "mount": (165, 40), "umount2": (166, 39),
    "pivot_root": (155, 41), "chroot": (161, 51), "unshare": (272, 97), "setns": (308, 268), "bpf": (321, 280), "keyctl": (250, 219),
    "add_key": (248, 217), "request_key": (249, 218), "io_uring_setup": (425, 425), "userfaultfd": (323, 282),
    "perf_event_open": (298, 241), "open_by_handle_at": (304, 265), "memfd_create": (319, 279), "shmget": (29, 194),
    "msgget": (68, 186), "semget": (64, 190), "setrlimit": (160, 164), "prctl": (157, 167),
}  # fmt: skip
_REFUSED = {"prlimit64": (302, 261), "seccomp": (317, 277)}
# Without a wall around the process, nothing may be written anywhere.
_WRITING = {
    "creat": (85, None), "openat2": (437, 437), "unlink": (87, None), "unlinkat": (263, 35), "rename": (82, None),
    "renameat": (264, 38), "renameat2": (316, 276), "mkdir": (83, None), "mkdirat": (258, 34), "rmdir": (84, None),
    "link": (86, None), "linkat": (265, 37), "symlink": (88, None), "symlinkat": (266, 36), "chmod": (90, None), "fchmod": (91, 52),
    "fchmodat": (268, 53), "chown": (92, None), "lchown": (94, None), "fchown": (93, 55), "fchownat": (260, 54), "truncate": (76, 45),
    "mknod": (133, None), "mknodat": (259, 33), "setxattr": (188, 5), "lsetxattr": (189, 6), "utimensat": (280, 88),
}  # fmt: skip
_OPENS = {"open": ((2, None), 1), "openat": ((257, 56), 2)}
_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
_END, _REFUSE, _ALLOW = 0x80000000, 0x00050001, 0x7FFF0000
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


def confine(cpu_s: float, memory: int, stacks: int, walled: bool) -> None:
    """Of this process, for good. cpu_s: of processor time. memory: bytes. stacks: a file for the place of a loop without end; SIGUSR1 asks for it, too.
    walled: this process cannot reach a file of the machine, so that files may be written."""
    faulthandler.register(signal.SIGPROF, file=stacks, chain=True)
    signal.setitimer(signal.ITIMER_PROF, cpu_s)
    faulthandler.register(signal.SIGUSR1, file=stacks)
    limit(cpu_s, memory)
    if sys.platform == "linux" and platform.machine() in _MACHINES:
        _filter(program(platform.machine(), walled))


def limit(cpu_s: float, memory: int) -> None:
    """The kernel's limits of this process."""
    import resource

    seconds = math.ceil(cpu_s) + 1
    for what, most in (
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_FSIZE, FILE_BYTES),
        (resource.RLIMIT_NOFILE, 64),
        (resource.RLIMIT_CORE, 0),
    ):
        try:
            resource.setrlimit(what, (most, most))
        except (ValueError, OSError):  # macOS knows no RLIMIT_AS
            pass


def program(machine: str, walled: bool) -> bytes:
    """The filter, as the kernel reads it: instructions of 8 bytes (struct sock_filter)."""
    column, audit = _MACHINES[machine]
    rules: list[tuple[int, int, int, int]] = [(_LOAD, 0, 0, 4), (_EQUAL, 1, 0, audit), (_RETURN, 0, 0, _END), (_LOAD, 0, 0, 0)]
    if machine == "x86_64":  # calls of x32 have other numbers
        rules += [(_AT_LEAST, 0, 1, 0x40000000), (_RETURN, 0, 0, _END)]
    refused = dict(_REFUSED) if walled else {**_REFUSED, **_WRITING}
    for calls, verdict in ((_ENDS, _END), (refused, _REFUSE)):
        for numbers in calls.values():
            if (number := numbers[column]) is not None:
                rules += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, verdict)]
    for numbers, argument in () if walled else _OPENS.values():
        if (number := numbers[column]) is not None:
            rules += [(_EQUAL, 0, 4, number), (_LOAD, 0, 0, 16 + 8 * argument), (_ANY_BIT, 0, 1, _WRITES), (_RETURN, 0, 0, _REFUSE)]
            rules += [(_LOAD, 0, 0, 0)]
    rules += [(_RETURN, 0, 0, _ALLOW)]
    return b"".join(struct.pack("=HBBI", *rule) for rule in rules)


def _filter(rules: bytes) -> None:
    import ctypes

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("rules", ctypes.c_void_p))

    held = ctypes.create_string_buffer(rules, len(rules))
    whole = Program(len(rules) // 8, ctypes.cast(held, ctypes.c_void_p).value)
    call = ctypes.CDLL(None, use_errno=True).prctl
    zero = ctypes.c_ulong(0)
    if call(38, ctypes.c_ulong(1), zero, zero, zero) != 0:  # PR_SET_NO_NEW_PRIVS
        raise OSError(ctypes.get_errno(), "prctl")
    if call(22, ctypes.c_ulong(2), ctypes.byref(whole), zero, zero) != 0:  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER
        raise OSError(ctypes.get_errno(), "seccomp")
