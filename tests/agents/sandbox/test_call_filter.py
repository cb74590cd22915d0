"""The filter of system calls, run as the kernel runs it, for machines that this one is not as well."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.tools.sandbox.calls import FAMILIES, FORBIDDEN, MACHINES, SOCKETS, Instruction, call_filter

ALLOWED, REFUSED, KILLED = 0x7FFF0000, 0x00050001, 0x80000000


def decided(program: list[Instruction], architecture: int, number: int, argument: int) -> int:
    """What the kernel decides: the instructions of BPF that the filter is made of."""
    data = {0: number, 4: architecture, 16: argument & 0xFFFFFFFF}
    at = loaded = 0
    while True:
        code, jump_true, jump_false, k = program[at]
        at += 1
        match code:
            case 0x20:
                loaded = data[k]
            case 0x15:
                at += jump_true if loaded == k else jump_false
            case 0x35:
                at += jump_true if loaded >= k else jump_false
            case 0x06:
                return k


@pytest.mark.parametrize("machine", MACHINES)
@given(number=st.integers(0, 500), family=st.integers(0, 60))
def test_only_what_is_forbidden_is_refused(machine: str, number: int, family: int) -> None:
    """A socket by its family, any other call by its number."""
    column = [*MACHINES].index(machine)
    program = call_filter(machine)
    decision = decided(program, MACHINES[machine], number, family)
    if number in {pair[column] for pair in FORBIDDEN.values()}:
        assert decision == REFUSED
    elif number in {pair[column] for pair in SOCKETS.values()}:
        assert decision == (ALLOWED if family in FAMILIES else REFUSED)
    else:
        assert decision == ALLOWED


def test_every_forbidden_call_is_refused() -> None:
    """Whatever its arguments; other numberings are refused or end the program."""
    for column, (machine, architecture) in enumerate(MACHINES.items()):
        program = call_filter(machine)
        assert len(program) < 4_096
        for name, pair in FORBIDDEN.items():
            if pair[column] is not None:
                assert decided(program, architecture, int(pair[column] or 0), 1) == REFUSED, name
        assert decided(program, architecture, 0x40000000 + 41, 1) == REFUSED
        assert decided(program, 0x40000003, 41, 1) == KILLED
    with pytest.raises(ValueError, match="riscv64"):
        call_filter("riscv64")
