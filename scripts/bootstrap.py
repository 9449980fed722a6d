#!/usr/bin/env python3
"""Set up `.venv` for the Makefile: `python3 scripts/bootstrap.py demo|dev`.

Needs nothing but some Python 3: it looks for one that is new enough, builds the environment with
`uv` where that is installed and with `venv` and `pip` where it is not, and does nothing when
`pyproject.toml` has not changed since the last time. Runs on old Pythons too, so that those get a
sentence instead of a SyntaxError.
"""

import contextlib
import hashlib
import os
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
VENV = os.path.join(ROOT, ".venv")
VENV_PYTHON = (
    os.path.join(VENV, "Scripts", "python.exe") if os.name == "nt" else os.path.join(VENV, "bin", "python")
)
OLDEST = (3, 11)
OTHER_PYTHONS = ("python3.13", "python3.12", "python3.11", "python3.14", "python3", "python")
DEMO_EXTRAS = ("embedded", "local")
# Extras whose packages are built for some platforms only, and what that means where they are not.
PLATFORM_EXTRAS = ("embedded", "local")
URL_VARIABLES = ("MEMRAG_TEST_POSTGRES_URL", "MEMRAG_LOCATION")

TOO_OLD = """\
langchain-memrag needs Python %d.%d or newer, and this one is %d.%d. Install one (https://www.python.org,
pyenv, or your package manager) or uv (https://docs.astral.sh/uv), then run make again. A Python that is not
on the PATH is named like this: make %s PYTHON=/path/to/python3.12"""

NO_VENV = """\
This Python cannot build virtual environments. On Debian and Ubuntu: apt install python3-venv; elsewhere
install uv (https://docs.astral.sh/uv). Then run make again."""

NO_INDEX = """\
No package index answered, so nothing was installed. Check the network or the settings of pip, then run make
again."""

NO_POSTGRES = """\
The PostgreSQL that comes along as a wheel has no build for this platform (Alpine and other musl systems, some
processors). Start a PostgreSQL 15 or newer with pgvector, for example
    docker run -d -p 5432:5432 -e POSTGRES_PASSWORD=memrag pgvector/pgvector:pg18
and name it:
    make demo MEMRAG_LOCATION=postgresql://postgres:memrag@localhost/postgres
    make test MEMRAG_TEST_POSTGRES_URL=postgresql://postgres:memrag@localhost/postgres"""

FAILED = "The packages could not be installed; the lines above say why. Once that is mended, run make again."


def stop(message):
    """End with a sentence for the person at the terminal."""
    sys.stderr.write("\n" + message + "\n")
    sys.exit(1)


def say(message):
    """One line about what is going on."""
    sys.stderr.write("[setup] " + message + "\n")
    sys.stderr.flush()


def version_of(python):
    """The version of a Python by name or path, or None where it does not run."""
    probe = "import sys; print('%d %d' % sys.version_info[:2])"
    try:
        out = subprocess.check_output([python, "-c", probe], stderr=subprocess.DEVNULL)
        major, minor = out.split()
    except (OSError, ValueError, subprocess.CalledProcessError):
        return None
    return int(major), int(minor)


def imports(python, module):
    """Whether that Python has a module."""
    done = subprocess.call(
        [python, "-c", "import " + module], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    return done == 0


def find_python():
    """A Python that is new enough, or None."""
    for python in (sys.executable,) + OTHER_PYTHONS:
        version = version_of(python) if python else None
        if version is not None and version >= OLDEST:
            return python
    return None


def usable():
    """Whether `.venv` is there and its Python runs and is new enough."""
    version = version_of(VENV_PYTHON) if os.path.exists(VENV_PYTHON) else None
    return version is not None and version >= OLDEST


def create():
    """Build an empty `.venv`."""
    python = find_python()
    if os.path.exists(VENV):
        say("the .venv here does not run (moved, or its Python is gone): building it anew")
        shutil.rmtree(VENV)
    uv = shutil.which("uv")
    if uv:
        # Without a Python of its own to point at, uv fetches one.
        if subprocess.call([uv, "venv", "--quiet", "--python", python or ">=%d.%d" % OLDEST, VENV]) == 0:
            return
        say("uv could not build the environment: trying venv")
    if python is None:
        verb = "demo" if sys.argv[1] == "demo" else "test"
        stop(TOO_OLD % (OLDEST + sys.version_info[:2] + (verb,)))
    if imports(python, "ensurepip"):
        made = subprocess.call([python, "-m", "venv", VENV])
    elif imports(python, "virtualenv"):
        made = subprocess.call([python, "-m", "virtualenv", "--quiet", VENV])
    elif imports(python, "pip"):
        made = subprocess.call([python, "-m", "venv", "--without-pip", VENV]) or subprocess.call(
            [python, "-m", "pip", "--python", VENV_PYTHON, "install", "--quiet", "pip"]
        )
    else:
        made = 1
    if made != 0:
        stop(NO_VENV)


def fingerprint():
    """What the environment was built from."""
    digest = hashlib.sha256()
    for name in ("pyproject.toml", os.path.join("scripts", "bootstrap.py")):
        with open(os.path.join(ROOT, name), "rb") as file:
            digest.update(file.read())
    digest.update(ROOT.encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def stamp_of(profile):
    """Where it is noted that a profile is installed."""
    return os.path.join(VENV, ".memrag-" + profile)


def is_installed(profile):
    """Whether this profile, or the one that holds it, was installed from these very files."""
    for name in {profile, "dev"}:
        with contextlib.suppress(OSError), open(stamp_of(name)) as file:
            if file.read().strip() == fingerprint():
                return True
    return False


def requirements(profile):
    """The extras of a profile, and the packages of its dependency group."""
    import tomllib  # only ever read by the Python of `.venv`

    with open(os.path.join(ROOT, "pyproject.toml"), "rb") as file:
        project = tomllib.load(file)
    if profile == "demo":
        return list(DEMO_EXTRAS), []
    everything = project["project"]["optional-dependencies"]["all"][0]
    extras = everything.partition("[")[2].partition("]")[0].split(",")
    groups = project["dependency-groups"]

    def expand(name):
        for item in groups[name]:
            if isinstance(item, dict):
                yield from expand(item["include-group"])
            else:
                yield item

    return extras, list(expand("dev"))


def installer():
    """The command that installs into `.venv`, without its packages."""
    uv = shutil.which("uv")
    if uv:
        return [uv, "pip", "install", "--quiet", "--python", VENV_PYTHON]
    if not imports(VENV_PYTHON, "pip"):
        subprocess.call([VENV_PYTHON, "-m", "ensurepip", "--upgrade"], stdout=subprocess.DEVNULL)
    return [VENV_PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]


def has_build(extra, command):
    """Whether an extra's packages are built for this platform."""
    import tomllib

    with open(os.path.join(ROOT, "pyproject.toml"), "rb") as file:
        packages = tomllib.load(file)["project"]["optional-dependencies"][extra]
    names = [name.split(">")[0] for name in packages]
    only = [flag for name in names for flag in ("--only-binary", name)]
    return (
        subprocess.call([*command, "--dry-run", "--no-deps", *only, *packages], stderr=subprocess.DEVNULL)
        == 0
    )


def install(profile):
    """Fill `.venv`; runs under the Python of `.venv` itself."""
    extras, packages = requirements(profile)
    command = installer()
    for extra in PLATFORM_EXTRAS:
        if has_build(extra, command):
            continue
        if not index_answers(command):
            stop(NO_INDEX)
        extras.remove(extra)
        if extra == "local":
            say("the local embedder has no build for this platform: recall works by words and by names here")
        elif not any(os.environ.get(name) for name in URL_VARIABLES):
            stop(NO_POSTGRES)
    say("installing (%s); this takes a minute or two the first time" % ", ".join(extras))
    if subprocess.call([*command, "--editable", ".[%s]" % ",".join(extras), *packages], cwd=ROOT) != 0:
        stop(FAILED)
    with open(stamp_of(profile), "w") as file:
        file.write(fingerprint() + "\n")


def index_answers(command):
    """Whether the index answers at all: every platform can install this one."""
    return (
        subprocess.call([*command, "--dry-run", "--no-deps", "typing-extensions"], stderr=subprocess.DEVNULL)
        == 0
    )


def main():
    """Set up what the named profile needs, unless it is there."""
    if len(sys.argv) < 2 or sys.argv[1] not in {"demo", "dev"}:
        stop("usage: python3 scripts/bootstrap.py demo|dev")
    profile = sys.argv[1]
    if sys.argv[2:] == ["--install"]:
        install(profile)
        return
    if not usable():
        create()
    if not is_installed(profile):
        # The rest needs a new Python (tomllib): the one that was just found.
        sys.exit(subprocess.call([VENV_PYTHON, os.path.abspath(__file__), profile, "--install"]))


if __name__ == "__main__":
    main()
