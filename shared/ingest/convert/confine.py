"""What the kernel refuses to the process that converts: sockets, and programs other than itself.

The audit hook of the worker stops Python code. The parsers are C and C++, which no hook sees; on Linux a system call
filter stops them as well (seccomp(2): a program for the kernel's packet filter, which sees the number of each call).
"""

from __future__ import annotations

import ctypes
import errno
import platform
import struct
import sys

_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _MODE_FILTER = 38, 22, 2
# The words of the packet filter's language that are needed (linux/bpf_common.h, linux/seccomp.h).
_LOAD, _IF_EQUAL, _IF_AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000 | errno.EPERM
_NUMBER_AT, _MACHINE_AT = 0, 4
# Numbers of x32, the second door into the same kernel, begin here.
_SECOND_DOOR = 0x40000000
# By machine: its audit number, then socket, connect, sendto, sendmsg, bind, listen, execve, execveat, ptrace,
# process_vm_writev and io_uring_setup (the tables of the kernel's system calls).
_CALLS: dict[str, tuple[int, tuple[int, ...]]] = {
    "x86_64": (0xC000003E, (41, 42, 44, 46, 49, 50, 59, 322, 101, 311, 425)),
    "aarch64": (0xC00000B7, (198, 203, 206, 211, 200, 201, 221, 281, 117, 271, 425)),
}


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def confine() -> bool:
    """Give up sockets and other programs for good. Return whether this kernel takes the filter."""
    known = _CALLS.get(platform.machine())
    if sys.platform != "linux" or known is None:
        return False
    instructions = _filter(*known)
    program = _Program(len(instructions) // 8, instructions)
    library = ctypes.CDLL(None, use_errno=True)
    if library.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        return False
    return bool(library.prctl(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.byref(program), 0, 0) == 0)


def _filter(machine: int, refused: tuple[int, ...]) -> bytes:
    """Return the program: another machine's calls and the refused ones fail with EPERM, all others pass."""

    def step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
        return struct.pack("=HBBI", code, if_true, if_false, value)

    tests = [step(_IF_EQUAL, number, len(refused) - position) for position, number in enumerate(refused)]
    return b"".join(
        [
            step(_LOAD, _MACHINE_AT),
            step(_IF_EQUAL, machine, 1),
            step(_RETURN, _REFUSE),
            step(_LOAD, _NUMBER_AT),
            step(_IF_AT_LEAST, _SECOND_DOOR, len(refused) + 1),
            *tests,
            step(_RETURN, _ALLOW),
            step(_RETURN, _REFUSE),
        ]
    )
