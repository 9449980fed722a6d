"""`compose.yaml` brings the four servers, pinned and watched, and keeps to this machine."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

COMPOSE = yaml.safe_load((Path(__file__).parents[2] / "compose.yaml").read_text())
SERVICES = COMPOSE["services"]

IMAGES = {
    "postgres": r"pgvector/pgvector:0\.8\.\d+-pg18(-\w+)?",
    "qdrant": r"qdrant/qdrant:v1\.18\.\d+",
    "neo4j": r"neo4j:5\.26(\.\d+)?-community",
    "redis": r"redis:7\.4(\.\d+)?",
}


def test_the_four_servers() -> None:
    assert set(SERVICES) == set(IMAGES)


@pytest.mark.parametrize("name", sorted(IMAGES))
def test_a_server_is_pinned_watched_and_kept(name: str) -> None:
    service = SERVICES[name]
    assert re.fullmatch(IMAGES[name], service["image"])
    health = service["healthcheck"]
    assert health["test"][0] in {"CMD", "CMD-SHELL"}
    assert {"interval", "timeout", "retries"} <= set(health)
    (volume,) = service["volumes"]
    assert volume.split(":")[0] in COMPOSE["volumes"]
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])


@pytest.mark.parametrize("name", sorted(IMAGES))
def test_a_password_comes_from_the_environment(name: str) -> None:
    secrets = [
        value
        for key, value in SERVICES[name]["environment"].items()
        if re.search(r"PASSWORD|AUTH|API_KEY", key)
    ]
    assert secrets
    for value in secrets:
        assert re.fullmatch(r"(neo4j/)?\$\{[A-Z0-9_]+:-memrag-dev\}", value)


def test_a_shell_in_a_container_sees_its_own_variables() -> None:
    """A single `$` would be filled in by compose, from the environment of whoever calls it."""
    for service in SERVICES.values():
        for line in [*service["healthcheck"]["test"], *service.get("command", [])]:
            assert not re.search(r"(?<!\$)\$(?!\$)", line)
