"""Forgetting: erase from every store in one go, then look."""

from __future__ import annotations

__all__ = ["Eraser"]
