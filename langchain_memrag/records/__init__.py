"""What memory is made of: frozen values, with no database and no I/O.

Every record forbids unknown fields and cannot be changed after it is made. Times are aware
and in UTC; ids are UUIDv7, but order is always `(occurred_at, seq)`, never the id.
"""

from __future__ import annotations

from langchain_memrag.records.basics import (
    LONGEST_IDENTIFIER,
    Arm,
    Category,
    Layer,
    Metadata,
    Record,
    RelationType,
    Role,
    Source,
    UtcTime,
)
from langchain_memrag.records.episodes import Episode, EpisodePage, Receipt, Turn, TurnFields, local_time
from langchain_memrag.records.knowledge import Entity, Relation
from langchain_memrag.records.recalls import (
    Degradation,
    Hit,
    Intent,
    Recall,
    RecallFields,
    RecallFilter,
    RecallOptions,
    SignalScore,
)
from langchain_memrag.records.reports import EngineHealth, ErasureReport, Health, Job, SpaceStats, StoreCount
from langchain_memrag.records.scope import Scope

__all__ = [
    "LONGEST_IDENTIFIER",
    "Arm",
    "Category",
    "Degradation",
    "EngineHealth",
    "Entity",
    "Episode",
    "EpisodePage",
    "ErasureReport",
    "Health",
    "Hit",
    "Intent",
    "Job",
    "Layer",
    "Metadata",
    "Recall",
    "RecallFields",
    "RecallFilter",
    "RecallOptions",
    "Receipt",
    "Record",
    "Relation",
    "RelationType",
    "Role",
    "Scope",
    "SignalScore",
    "Source",
    "SpaceStats",
    "StoreCount",
    "Turn",
    "TurnFields",
    "UtcTime",
    "local_time",
]
