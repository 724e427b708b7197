"""What can go wrong, as types. Each message says what is wrong, where, and what to do about it."""

from __future__ import annotations


class HingeError(Exception):
    """Base of every error that hinge raises on purpose; `exit_code` is what the command ends with."""

    exit_code = 1

    def __init__(self, what: str, *, where: str = "", remedy: str = "") -> None:
        self.what, self.where, self.remedy = what, where, remedy
        text = f"{where}: {what}" if where else what
        super().__init__(f"{text.rstrip('.')}. {remedy}" if remedy else text)


class UsageError(HingeError, ValueError):
    """A parameter or an option that makes no sense, alone or beside another."""

    exit_code = 2


class DataError(HingeError, ValueError):
    """Rows, labels, weights or a file that cannot be used as they are."""

    exit_code = 3


class DivergenceError(HingeError, ArithmeticError):
    """A fit whose objective left the finite numbers."""

    exit_code = 4


class ResourceError(HingeError, RuntimeError):
    """Memory, disk or another resource of the machine that does not suffice."""

    exit_code = 5
