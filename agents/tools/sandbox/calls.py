"""Which calls of the kernel a program in the sandbox may make: a filter for seccomp.

A list of what is forbidden, not of what is allowed, so that it needs no care with each new kernel: what
reaches beyond the namespaces, and what few programs need and many holes were found in. Numbers are those
of the kernel's ``asm/unistd_64.h`` (x86_64) and ``asm-generic/unistd.h`` (aarch64); the form is that of
``linux/filter.h`` and ``linux/seccomp.h``.
"""

import platform
from typing import Final

FAMILIES: Final = (1, 2, 10, 16)
"""Sockets within the sandbox: ``AF_UNIX``, ``AF_INET``, ``AF_INET6``, ``AF_NETLINK``, all of which a network
namespace shuts in. ``AF_VSOCK`` it does not: that one reaches the host of a virtual machine."""

MACHINES: Final = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""What seccomp calls them (``AUDIT_ARCH_*`` of ``linux/audit.h``)."""

SOCKETS: Final = {"socket": (41, 198), "socketpair": (53, 199)}

FORBIDDEN: Final = {
    # Other processes' memory.
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    # Namespaces and mounts.
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262),
    # Keys of the kernel's keyrings.
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    # Programs within the kernel, and ways around this very filter.
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    # The machine itself.
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "reboot": (169, 142),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "syslog": (103, 116),
    "lookup_dcookie": (212, 18),
    "iopl": (172, None),
    "ioperm": (173, None),
    "modify_ldt": (154, None),
}

_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16
_ALLOW, _REFUSE, _KILL = 0x7FFF0000, 0x00050001, 0x80000000  # refused as EPERM
_X32 = 0x40000000

Instruction = tuple[int, int, int, int]


def call_filter(machine: str | None = None) -> list[Instruction]:
    """The filter of a machine, this one by default: instructions of ``code``, ``jt``, ``jf`` and ``k``.

    Raises:
        ValueError: nothing is known of such a machine.
    """
    machine = machine or platform.machine()
    column = list(MACHINES).index(machine)
    numbers = sorted(n for pair in FORBIDDEN.values() if (n := pair[column]) is not None)
    sockets = [pair[column] for pair in SOCKETS.values()]
    made: list[Instruction] = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, MACHINES[machine]),
        (_RETURN, 0, 0, _KILL),  # 32-bit programs have other numbers
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 0, 1, _X32),
        (_RETURN, 0, 0, _REFUSE),
    ]
    for number in numbers:
        made += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _REFUSE)]
    # A socket goes on to its family, anything else is allowed.
    made += [(_EQUAL, len(sockets) - place, 0, number) for place, number in enumerate(sockets)]
    made += [(_RETURN, 0, 0, _ALLOW), (_LOAD, 0, 0, _FIRST_ARGUMENT)]
    made += [(_EQUAL, len(FAMILIES) - place, 0, family) for place, family in enumerate(FAMILIES)]
    return [*made, (_RETURN, 0, 0, _REFUSE), (_RETURN, 0, 0, _ALLOW)]
