"""What tests of memory need, for users' tests too: scripted model, cheap embeddings, a clock."""

from __future__ import annotations
