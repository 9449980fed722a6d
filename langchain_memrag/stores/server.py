"""A database product beside Postgres: what every one of them must be able to say of itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar
from uuid import UUID

__all__ = ["Server"]


class Server(ABC):
    """A connection to an engine that holds a copy of what the record knows.

    Nothing connects before the first use; a server may be away at any time.

    Attributes:
        engine: Its name, as in errors and reports.
    """

    engine: ClassVar[str]

    @property
    @abstractmethod
    def label(self) -> str:
        """Where it is, without credentials."""

    @abstractmethod
    def adopt(self, memory: UUID) -> bool:
        """Say which memory the data here belong to; spaces of two memories have the same numbers.

        Args:
            memory: Names the record's database and schema.

        Returns:
            Whether the server knew it: an empty one, or one that lost its data, has to be filled.

        Raises:
            ConfigurationError: The data here belong to another memory; nothing was changed.
            StoreUnavailableError: The engine cannot be reached.
        """

    @abstractmethod
    def version(self) -> str:
        """The version of the server; also the way to see whether it answers.

        Raises:
            StoreUnavailableError: The engine cannot be reached.
        """

    @abstractmethod
    def close(self) -> None:
        """Let all connections go; it cannot be used again."""
