"""Every error that langchain-memrag raises, in one tree.

```
MemRAGError
├── ConfigurationError (ValueError)        bad argument or URL; embedder does not match the index
│   └── MissingDependencyError (ImportError)   names the extra to install
├── ScopeError (ValueError)                no user, blank user, or not the authenticated one
├── NotFoundError (LookupError)            a record that is not there, or not in this space
├── StoreError                             engine, operation, __cause__
│   ├── StoreUnavailableError              worth retrying
│   │   └── StoreTimeoutError              it is there, but took too long
│   └── SchemaError                        run `memrag migrate`
└── ExtractionError                        model output unusable after one repair
```

Messages say what failed, where, and what to do. They never carry a credential or a user's text.
"""

from __future__ import annotations

__all__ = [
    "ConfigurationError",
    "ExtractionError",
    "MemRAGError",
    "MissingDependencyError",
    "NotFoundError",
    "SchemaError",
    "ScopeError",
    "StoreError",
    "StoreTimeoutError",
    "StoreUnavailableError",
]


class MemRAGError(Exception):
    """Base of every error that this package raises on purpose."""


class ConfigurationError(MemRAGError, ValueError):
    """An argument, a setting or a URL is wrong, or an embedder does not match its index."""


class MissingDependencyError(ConfigurationError, ImportError):
    """A feature needs a package that is not installed.

    Args:
        feature: What was asked for, as a user would name it.
        extra: The extra that brings it, as in `pip install "langchain-memrag[extra]"`.
        detail: What else the user should know (a platform without a wheel, say).
    """

    def __init__(self, feature: str, extra: str, detail: str = "") -> None:
        self.feature = feature
        self.extra = extra
        hint = f'{feature} needs an extra: pip install "langchain-memrag[{extra}]"'
        super().__init__(f"{hint}. {detail}" if detail else hint)


class ScopeError(MemRAGError, ValueError):
    """No user, a blank user, or a claimed user that is not the authenticated one."""


class NotFoundError(MemRAGError, LookupError):
    """The record does not exist, or not in the space it was asked of."""


class StoreError(MemRAGError):
    """A store refused or failed; the driver's error is `__cause__`.

    Args:
        message: What failed and what to do.
        engine: The engine, such as `postgres` or `qdrant`.
        operation: What was being done, such as `remember`.
    """

    def __init__(self, message: str, *, engine: str, operation: str) -> None:
        self.engine = engine
        self.operation = operation
        super().__init__(f"{engine}: {operation}: {message}")


class StoreUnavailableError(StoreError):
    """The engine cannot be reached just now; trying again may help."""


class StoreTimeoutError(StoreUnavailableError):
    """The engine answers, but took longer than it was given."""


class SchemaError(StoreError):
    """The database's schema is not the one that this version works with."""


class ExtractionError(MemRAGError):
    """A model's output was unusable after one repair; the episode itself is kept."""
