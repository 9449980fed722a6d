"""The README does what it says: its examples run and print what stands below them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from langchain_memrag import MemRAG
from langchain_memrag.cli.importing import FIELDS, GoodLine, line_of
from langchain_memrag.cli.running import Exit
from langchain_memrag.settings import Settings
from langchain_memrag.testing.chat import ScriptedChatModel

from .conftest import REPOSITORY

README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
MAKEFILE = (REPOSITORY / "Makefile").read_text(encoding="utf-8")


@dataclass(frozen=True)
class Example:
    """A block of Python, where it starts, and what it prints."""

    line: int
    code: str
    output: str

    def __str__(self) -> str:
        return f"line-{self.line}"


def blocks(kind: str) -> list[tuple[int, str]]:
    found = re.finditer(rf"^```{kind}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    return [(README.count("\n", 0, match.start()) + 1, match[1]) for match in found]


def examples() -> list[Example]:
    outputs = dict(blocks("text"))
    found = []
    for line, code in blocks("python"):
        after = line + code.count("\n") + 3  # the closing fence and the empty line
        assert after in outputs, f"the example in line {line} does not show what it prints"
        found.append(Example(line, code, outputs[after]))
    return found


EXAMPLES = examples()


@pytest.mark.parametrize("example", EXAMPLES, ids=str)
def test_an_example_prints_what_stands_below_it(
    example: Example,
    opened: list[MemRAG],
    hosted_model: ScriptedChatModel,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
):
    code = compile("\n" * example.line + example.code, str(REPOSITORY / "README.md"), "exec")
    exec(code, {"__name__": "__main__"})
    printed = capsys.readouterr().out
    for line in example.output.splitlines():
        assert line in printed
    assert opened, "the example opened no memory"
    assert (folder / ".memrag").is_dir()


def test_an_agent_gains_memory_by_three_lines():
    first = EXAMPLES[0].code
    lines = first.splitlines()
    added = [line for line in lines if "# +" in line]
    assert len(added) == 3

    imports = {line for line in lines if line.startswith("from langchain_memrag")}
    without = "\n".join(line for line in lines if line not in {*added, *imports})
    assert "memrag" not in without.lower().replace("langchain_memrag", ""), "the rest knows nothing of memory"
    compile(without, "README.md", "exec")


def test_the_agent_of_the_first_example_knows_nothing_without_the_three_lines(
    hosted_model: ScriptedChatModel, capsys: pytest.CaptureFixture[str]
):
    lines = EXAMPLES[0].code.splitlines()
    without = "\n".join(line for line in lines if "# +" not in line and "langchain_memrag" not in line)
    exec(compile(without, "README.md", "exec"), {"__name__": "__main__"})
    assert "peanuts" not in capsys.readouterr().out


def test_the_two_commands_are_there():
    for verb in ("demo", "test"):
        assert f"\nmake {verb} " in README
        assert re.search(rf"^{verb}: setup-\w+ ##", MAKEFILE, re.MULTILINE)
    assert (REPOSITORY / ".ci" / "run").read_text(encoding="utf-8").rstrip().endswith("exec make test")


def test_every_make_verb_that_the_documents_name_exists():
    verbs = set(re.findall(r"^([a-z]+):", MAKEFILE, re.MULTILINE))
    named = set()
    for name in ("README.md", "CONTRIBUTING.md"):
        text = (REPOSITORY / name).read_text(encoding="utf-8")
        named |= set(re.findall(r"(?:`|^)make ([a-z]+)", text, re.MULTILINE))
    assert {"demo", "test", "check", "soak", "bench"} <= named
    assert named <= verbs


def test_the_line_to_import_is_a_good_one():
    ((_, line),) = blocks("json")
    judged = line_of(line.encode(), 1, "README.md")
    assert isinstance(judged, GoodLine)
    assert all(f'"{name}"' in line for name in FIELDS)


def test_exit_codes_and_settings_are_all_described():
    codes = {int(code) for code in re.findall(r"^\| (\d+) \|", README, re.MULTILINE)}
    assert codes == set(Exit)
    for name, field in Settings.model_fields.items():
        assert f"`{field.validation_alias or f'MEMRAG_{name.upper()}'}`" in README


def test_extras_are_all_described():
    import tomllib

    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    table = README.partition("| extra | brings |")[2].partition("\n\n")[0]
    assert set(re.findall(r"`([a-z0-9]+)`", table)) == set(project["optional-dependencies"])


@pytest.mark.parametrize(
    "document", ["README.md", "CONTRIBUTING.md", "CONTEXT.md", "CHANGELOG.md", "docs/adr/README.md"]
)
def test_links_lead_somewhere(document: str):
    path = REPOSITORY / document
    text = path.read_text(encoding="utf-8")
    headings = {
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    }
    for target in re.findall(r"\]\(([^)]+)\)", text):
        if target.startswith("#"):
            assert target[1:] in headings
        elif not target.startswith("https://"):
            assert (path.parent / target).exists(), target


def test_the_changelog_knows_this_version():
    from importlib.metadata import version

    text = (REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8")
    assert "## [Unreleased]" in text or f"## [{version('langchain-memrag')}]" in text
    assert re.search(r"^### Added\n\n\* ", text, re.MULTILINE)


def test_no_document_names_a_place_of_one_machine():
    for path in [*REPOSITORY.glob("*.md"), *REPOSITORY.glob("docs/**/*.md"), REPOSITORY / "Makefile"]:
        assert not re.search(r"(?<![\w.])/(?:home|root|work|Users|tmp)/", path.read_text(encoding="utf-8")), (
            path
        )
