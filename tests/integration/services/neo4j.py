"""A real Neo4j with a password, run from the jars that `scripts/services.py` fetches."""

from __future__ import annotations

import re
import secrets
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from tests.integration.servers import free_port

from .process import ServerProcess

__all__ = ["LIB", "Neo4jServer", "missing"]

LIB = Path(__file__).parents[3] / ".services" / "neo4j" / "lib"

OLDEST_JAVA = 17

# Neo4j reaches into these packages of Java's own, which must be opened to it.
OPENED = ("java.nio", "java.io", "java.util.concurrent", "sun.nio.ch")


@cache
def missing() -> str | None:
    """What it lacks to run here; `None` where it can."""
    java = shutil.which("java")
    if java is None:
        return "Java is not installed"
    if not any(LIB.glob("neo4j-server-*.jar")):
        return "its jars are not in .services/neo4j/lib"
    said = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False).stderr
    found = re.search(r'version "(\d+)', said)
    if found is None or int(found[1]) < OLDEST_JAVA:
        return f"Java is older than {OLDEST_JAVA}"
    return None


class Neo4jServer(ServerProcess):
    """A Neo4j over Bolt; its user is `neo4j`.

    Args:
        folder: Its home.
    """

    ready_within = 120.0

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.password = secrets.token_urlsafe(12)
        self._http = free_port()
        self._login = "neo4j"  # the first one, which must be changed before anything else

    @property
    def place(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"bolt://neo4j:{self.password}@{self.place}"

    def command(self) -> Sequence[str]:
        for name in ("conf", "data", "logs", "run", "plugins", "import"):
            (self.folder / name).mkdir(exist_ok=True)
        settings = {
            "server.default_listen_address": "127.0.0.1",
            "server.bolt.listen_address": self.place,
            "server.http.listen_address": f"127.0.0.1:{self._http}",
            "server.https.enabled": "false",
            "server.memory.heap.initial_size": "512m",
            "server.memory.heap.max_size": "512m",
            "server.memory.pagecache.size": "128m",
            "dbms.usage_report.enabled": "false",
        }
        conf = self.folder / "conf" / "neo4j.conf"
        conf.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        opened = [f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in OPENED]
        return [
            "java", "-Xms512m", "-Xmx512m", "-XX:+UseG1GC", *opened, "-cp", f"{LIB}/*",
            "org.neo4j.server.CommunityEntryPoint", f"--home-dir={self.folder}",
            f"--config-dir={self.folder / 'conf'}",
        ]  # fmt: skip

    def answers(self) -> bool:
        import neo4j
        from neo4j.exceptions import DriverError, Neo4jError

        driver = neo4j.GraphDatabase.driver(
            f"bolt://{self.place}", auth=("neo4j", self._login), connection_timeout=2,
            connection_acquisition_timeout=5, max_transaction_retry_time=0,
        )  # fmt: skip
        try:
            if self._login != self.password:
                with driver.session(database="system") as session:
                    session.run(
                        "ALTER CURRENT USER SET PASSWORD FROM $old TO $new",
                        old=self._login,
                        new=self.password,
                    ).consume()
                self._login = self.password
                return False  # the next look is with the new one
            with driver.session() as session:
                session.run("RETURN 1").consume()
        except (DriverError, Neo4jError):  # not there yet, or still recovering
            return False
        else:
            return True
        finally:
            driver.close()
