"""Under whose account the server runs, on POSIX.

PostgreSQL refuses to run as root, yet root is who runs in containers and in CI, often with the data
folder and the Python environment below folders that only root may enter. Two ways around it:

* a *user namespace*: the server believes to be somebody else while the kernel takes it for root without
  root's powers. Files stay root's, nothing is handed over. Some containers forbid it.
* an *unprivileged uid*: the server changes to a uid that owns nothing but the data directory, which it is
  given as an open descriptor, so that it needs no permission on any folder above. It cannot read programs
  below root's own folders either, so those are copied to a cache that everyone may read.

A data directory that belongs to somebody already is served under that uid. An ordinary user's server
runs as that user.
"""

from __future__ import annotations

import os
import pwd
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from langchain_memrag.errors import ConfigurationError
from langchain_memrag.stores._embedded.binaries import PACKAGE

# Owns nothing anywhere: above the accounts that people get, below those that systemd hands out, and inside
# the 65,536 uids that a container usually has.
SERVER_UID = 55_432
_PROBE_SECONDS = 20
_PROGRAMS = ("postgres", "initdb")
# What is found there is used only if nobody but root can have put it there.
_CACHES = (Path("/var/cache"), Path("/var/tmp"), Path("/tmp"))  # noqa: S108
# Nothing of the caller's environment: no LC_ALL that is not installed, no PG* variable, no secret.
_ENVIRONMENT = {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}


@dataclass(frozen=True)
class Account:
    """Who the server's processes are, and which copy of the programs they run.

    Args:
        binaries: The `bin` folder.
        prefix: A command that runs another one, such as `unshare`.
        uid: Change to this user first.
        gid: Change to this group first.
    """

    binaries: Path
    prefix: tuple[str, ...] = ()
    uid: int | None = None
    gid: int | None = None

    def command(self, program: str, arguments: Sequence[str]) -> list[str]:
        """The argument list that runs `program` under this account (save for the change of uid)."""
        return [*self.prefix, str(self.binaries / program), *arguments]

    def run(
        self,
        program: str,
        arguments: Sequence[str],
        *,
        stdin: str = "",
        fd: int | None = None,
        timeout: float,
    ) -> subprocess.CompletedProcess[str]:
        """Run to the end, in a session of its own so that Ctrl-C reaches only the caller."""
        return subprocess.run(  # noqa: S603 - our own programs, and no shell
            self.command(program, arguments),
            input=stdin,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=timeout,
            check=False,
            env=_ENVIRONMENT,
            pass_fds=() if fd is None else (fd,),
            start_new_session=True,
            user=self.uid,
            group=self.gid,
            extra_groups=None if self.uid is None else [],
        )

    def start(self, program: str, arguments: Sequence[str], *, fds: Sequence[int], log: int) -> Detached:
        """Start a process that outlives this one and inherits no descriptor but `fds` and its log."""
        return Detached(
            self.command(program, arguments),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=_ENVIRONMENT,
            pass_fds=fds,
            start_new_session=True,
            user=self.uid,
            group=self.gid,
            extra_groups=None if self.uid is None else [],
        )

    def initialiser(self) -> Account:
        """The account for initdb, which insists on a uid that has a name."""
        if self.uid is None or _has_name(self.uid):
            return self
        named = _named_user()
        return replace(self, uid=named.pw_uid, gid=named.pw_gid) if named else self

    def data_argument(self, path: Path, fd: int) -> str:
        """How to name a data directory: by descriptor where the path may be closed to this account."""
        # A line break in the path would shift the lines of postmaster.pid.
        by_descriptor = self.prefix or self.uid is not None or "\n" in str(path)
        return f"/proc/self/fd/{fd}" if by_descriptor and _has_proc() else str(path)

    def give(self, fd: int) -> None:
        """Hand the directory `fd` and all in it to this account; nothing to do unless it changes uid."""
        if self.uid is None:
            return
        gid = -1 if self.gid is None else self.gid
        for _, folders, files, parent in os.fwalk(".", dir_fd=fd):
            for name in (*folders, *files):
                os.chown(name, self.uid, gid, dir_fd=parent, follow_symlinks=False)
        os.fchown(fd, self.uid, gid)


class Detached(subprocess.Popen[bytes]):
    """A child that is meant to outlive its parent."""

    def __del__(self) -> None:
        """Say nothing: the inherited method warns about a child that still runs."""


def choose_account(binaries: Path, owner: int) -> Account:
    """The account under which to run, tried out.

    Args:
        binaries: The wheel's `bin` folder.
        owner: Whose the data directory is, or the folder if there is none yet.

    Raises:
        ConfigurationError: None works; the message says what would.
    """
    if os.geteuid() != 0:
        account = Account(binaries)
        if not _has_name(os.geteuid()) and user_namespace_works(binaries):
            account = _in_namespace(binaries)
        return account
    if owner == 0 and user_namespace_works(binaries):
        return _in_namespace(binaries)
    uid = owner or SERVER_UID
    gid = pwd.getpwuid(uid).pw_gid if _has_name(uid) else uid
    for place in _readable_copies(binaries) if _may_become(uid, gid) else ():
        account = Account(place, uid=uid, gid=gid)
        if _works(account):
            return account
    raise ConfigurationError(
        "PostgreSQL does not run as root, and this system allows root neither a user namespace nor to "
        f"change to uid {uid}. Any of these helps: run as an ordinary user (`docker run --user`); allow "
        "user namespaces (`docker run --security-opt seccomp=unconfined`); keep the capabilities SETUID, "
        "SETGID and CHOWN; or give a postgresql:// URL"
    )


def user_namespace_works(binaries: Path) -> bool:
    """Whether the programs can be run in a user namespace here."""
    return sys.platform == "linux" and shutil.which("unshare") is not None and _works(_in_namespace(binaries))


def _in_namespace(binaries: Path) -> Account:
    named = _named_user()
    uid, gid = (named.pw_uid, named.pw_gid) if named else (1000, 1000)
    unshare = shutil.which("unshare") or "unshare"
    return Account(binaries, prefix=(unshare, "--user", f"--map-user={uid}", f"--map-group={gid}", "--"))


def _works(account: Account) -> bool:
    try:
        # By what it says: where a program ignores SIGCHLD, every child seems to end with 0.
        said = account.run("postgres", ["--version"], timeout=_PROBE_SECONDS).stdout
        return said.startswith("postgres (PostgreSQL)")
    except (OSError, subprocess.SubprocessError):
        return False


def _may_become(uid: int, gid: int) -> bool:
    """Whether this process can start another under `uid`; asked before programs are copied for it."""
    try:
        subprocess.run(
            ["true"],  # noqa: S607 - found on the PATH below
            env=_ENVIRONMENT,
            check=False,
            timeout=_PROBE_SECONDS,
            user=uid,
            group=gid,
            extra_groups=[],
        )
    except FileNotFoundError:
        return True  # it got as far as looking for the program
    except (OSError, ValueError, subprocess.SubprocessError):
        return False
    return True


def _has_name(uid: int) -> bool:
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return False
    return True


def _named_user() -> pwd.struct_passwd | None:
    """Some user with a name other than root, preferably the one that stands for nobody."""
    try:
        return pwd.getpwnam("nobody")
    except KeyError:
        return next((entry for entry in pwd.getpwall() if entry.pw_uid), None)


def _has_proc() -> bool:
    return Path("/proc/self/fd").is_dir()


def _readable_copies(binaries: Path) -> Iterator[Path]:
    """The programs where an unprivileged uid may read them: in place, else copied."""
    if _everyone_reads(binaries):
        yield binaries
    for parent in dict.fromkeys((*_CACHES, Path(tempfile.gettempdir()))):
        try:
            yield _copy(binaries, parent)
        except OSError:  # a read-only or full file system: the next one may do
            continue


def _everyone_reads(binaries: Path) -> bool:
    # The catalogue's source is the file whose mode tells how the wheel was unpacked (a strict umask
    # leaves programs that others may run but not read).
    samples = [binaries / "postgres", binaries.parent / "share" / "postgresql" / "postgres.bki"]
    return all(sample.is_file() and sample.stat().st_mode & stat.S_IROTH for sample in samples)


def _copy(binaries: Path, parent: Path) -> Path:
    """A copy of what a server needs of the wheel, in a folder that root alone can write."""
    installation = binaries.parent
    original = (binaries / "postgres").stat()
    target = parent / f"langchain-memrag-{installation.name}-{original.st_size:x}-{original.st_mtime_ns:x}"
    copied = target / PACKAGE / installation.name / "bin"
    if not target.exists():
        making = Path(tempfile.mkdtemp(prefix=f"{target.name}-", dir=parent))
        try:
            _copy_installation(installation, making)
            making.rename(target)
        except OSError:
            shutil.rmtree(making, ignore_errors=True)
            if not target.exists():  # else somebody else was faster
                raise
    found = target.lstat()
    if found.st_uid != os.geteuid() or not stat.S_ISDIR(found.st_mode) or found.st_mode & 0o022:
        raise PermissionError(f"{target} is not ours")
    return copied


def _copy_installation(installation: Path, target: Path) -> None:
    inside = target / PACKAGE / installation.name
    (inside / "bin").mkdir(parents=True)
    for name in _PROGRAMS:
        shutil.copy2(installation / "bin" / name, inside / "bin" / name)
    shutil.copytree(installation / "share", inside / "share")
    unneeded = shutil.ignore_patterns("*.a", "pgxs", "pkgconfig")
    shutil.copytree(installation / "lib", inside / "lib", symlinks=True, ignore=unneeded)
    # The programs look for the wheel's shared libraries beside the package.
    libraries = installation.parent.parent / f"{PACKAGE}.libs"
    if libraries.is_dir():
        shutil.copytree(libraries, target / libraries.name, symlinks=True)
    for folder, _, files in os.walk(target):
        Path(folder).chmod(0o755)
        for name in files:
            file = Path(folder, name)
            if not file.is_symlink():
                file.chmod(0o755 if file.stat().st_mode & stat.S_IXUSR else 0o644)
