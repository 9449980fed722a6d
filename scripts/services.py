#!/usr/bin/env python3
"""Fetch the servers that the tests use: `python3 scripts/services.py`; quick where all are there already.

Redis and PgBouncer come from apt, where this runs as root on a system that has it; Neo4j comes as jars from
Maven into `.services/neo4j/lib`. Needs nothing but some Python 3. What could not be had is said in one line
each, and ends with status 1; the tests then leave it out, or fail where `MEMRAG_REQUIRE_SERVERS` is 1.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
POM = ROOT / "tests" / "integration" / "services" / "pom.xml"
LIB = ROOT / ".services" / "neo4j" / "lib"

# What is looked for, and the package of Debian and Ubuntu that brings it.
PACKAGES = {
    "redis-server": "redis-server",
    "pgbouncer": "pgbouncer",
    "java": "openjdk-17-jre-headless",
    "mvn": "maven",
}
APT_SECONDS = 240
MAVEN_SECONDS = 300
MAVEN_TRIES = 2


def say(message):
    """One line about what is going on."""
    sys.stderr.write(f"[services] {message}\n")
    sys.stderr.flush()


def found(program):
    """Whether a program is there; some lie where only root looks."""
    return shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin") is not None


def run(command, seconds, **options):
    """Run a command in silence; gives what went wrong in a few words, or None."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=seconds,
            check=False,
            **options,
        )
    except subprocess.TimeoutExpired:
        return f"no end after {seconds} s"
    except OSError as error:
        return str(error.strerror)
    if done.returncode == 0:
        return None
    lines = [line for line in done.stdout.splitlines() if line.strip()]
    return next((line for line in lines if line.startswith(("E:", "[ERROR]"))), "failed")[:200]


def install_packages(programs):
    """Install what is missing by apt; gives whether all are there then."""
    absent = [program for program in programs if not found(program)]
    if not absent:
        return True
    names = ", ".join(absent)
    if not found("apt-get") or not hasattr(os, "geteuid") or os.geteuid() != 0:
        say(f"not here, and not to be installed without apt and root: {names}")
        return False
    say(f"installing by apt: {names}")
    # Nothing is to be started: the tests start servers of their own.
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    wanted = [PACKAGES[program] for program in absent]
    install = ["apt-get", "install", "-qq", "-y", "--no-install-recommends"]
    for command in (["apt-get", "update", "-qq"], [*install, *wanted]):
        problem = run(command, APT_SECONDS, env=environment)
        if problem:
            say(f"{' '.join(command[:2])}: {problem}")
    # One that cannot be had must not keep the others away.
    for program in absent:
        if len(absent) > 1 and not found(program):
            run([*install, PACKAGES[program]], APT_SECONDS, env=environment)
    still = [program for program in absent if not found(program)]
    if still:
        say(f"could not be installed: {', '.join(still)}")
    return not still


def wanted_jar():
    """The jar that is there when all are: they are moved into place together."""
    found_version = re.search(r"<artifactId>neo4j-server</artifactId><version>([^<]+)<", POM.read_text())
    if found_version is None:
        raise SystemExit("[services] pom.xml names no version of neo4j-server")
    return LIB / f"neo4j-server-{found_version[1]}.jar"


def fetch_neo4j():
    """Fill `.services/neo4j/lib`; gives whether it is full then."""
    if wanted_jar().exists():
        return True
    if not install_packages(["mvn"]):
        return False
    say("fetching Neo4j from Maven: 116 MB, two minutes the first time")
    part = LIB.with_name("lib.part")
    command = ["mvn", "-q", "-B", "-f", str(POM), "dependency:copy-dependencies"]
    command += [f"-DoutputDirectory={part}", "-DincludeScope=runtime"]
    for _ in range(MAVEN_TRIES):
        part.mkdir(parents=True, exist_ok=True)
        problem = run(command, MAVEN_SECONDS)
        if problem is None and any(part.glob("neo4j-server-*.jar")):
            shutil.rmtree(LIB, ignore_errors=True)
            part.rename(LIB)
            return wanted_jar().exists()
        say(f"mvn: {problem or 'brought no jars'}")
    return False


def main():
    """Fetch everything; the status says whether it is all there."""
    programs = install_packages(["redis-server", "pgbouncer", "java"])
    jars = fetch_neo4j()
    if programs and jars:
        say("Redis, PgBouncer and Neo4j are there")
        return 0
    return 1


if __name__ == "__main__":
    sys.exit(main())
