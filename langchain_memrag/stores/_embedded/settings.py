"""The server's settings, given on its command line so that no file in the folder can differ."""

from __future__ import annotations

import os
from pathlib import Path

DATABASE = "memrag"
USER = "memrag"
_MEGABYTE = 1024 * 1024
_ROOMY_MB = 256
_SMALL_MB = 32
_CGROUP_LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)


def server_settings(*, small: bool = False) -> dict[str, str]:
    """What the server is started with, the platform's own settings aside.

    Args:
        small: Take as little memory as works well enough.
    """
    memory = _SMALL_MB if small else min(_ROOMY_MB, max(_SMALL_MB, _memory_megabytes() // 8))
    return {
        "max_connections": "100",
        "shared_buffers": f"{memory}MB",
        "maintenance_work_mem": f"{memory}MB",
        # Parallel index builds share maintenance_work_mem through /dev/shm, 64 MB in a plain container.
        "max_parallel_maintenance_workers": "2" if _shared_memory_megabytes() > 2 * memory else "0",
        "max_parallel_workers_per_gather": "0",
        "jit": "off",
        "random_page_cost": "1.1",
        "max_wal_size": "2GB",
        "wal_compression": "on",
        "fsync": "on",
        "synchronous_commit": "on",
        "full_page_writes": "on",
        "timezone": "UTC",
        "log_timezone": "UTC",
        "lc_messages": "C",
        "cluster_name": "memrag",
        **_QUIET,
    }


# Users' text must not reach the log. An ERROR carries it in its first line already ('invalid input
# syntax for type date: "..."'), so the log begins above ERROR, at the server's own affairs; those may
# carry a query in their DETAIL (a crashed process says what it was running), which `terse` drops.
_QUIET = {
    "logging_collector": "off",
    "log_destination": "stderr",
    "log_min_messages": "log",
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
    "log_statement": "none",
    "log_min_duration_statement": "-1",
    "log_min_duration_sample": "-1",
    "log_transaction_sample_rate": "0",
    "log_parameter_max_length": "0",
    "log_parameter_max_length_on_error": "0",
    "log_connections": "off",
    "log_disconnections": "off",
    "log_checkpoints": "off",
    "log_autovacuum_min_duration": "-1",
    "log_temp_files": "-1",
    "log_lock_waits": "off",
}


def as_arguments(settings: dict[str, str]) -> list[str]:
    """The settings as arguments of `postgres`."""
    return [argument for name, value in settings.items() for argument in ("-c", f"{name}={value}")]


def _memory_megabytes() -> int:
    """The memory this process may use: the machine's, or its container's if that is less."""
    limits = [4 * 1024]
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        limits = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // _MEGABYTE]
    for file in _CGROUP_LIMITS:
        try:
            text = file.read_text(encoding="ascii").strip()
        except OSError:
            continue
        if text.isdigit():  # "max" where there is no limit
            limits.append(int(text) // _MEGABYTE)
    return min(limits)


def _shared_memory_megabytes() -> int:
    """What is free in /dev/shm; plenty where there is no such thing."""
    try:
        status = os.statvfs("/dev/shm")  # noqa: S108
    except (OSError, AttributeError):
        return _ROOMY_MB * 4
    return status.f_bavail * status.f_frsize // _MEGABYTE
