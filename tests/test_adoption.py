"""The page for other people's trainers: every block runs as it stands, against the installed library."""

import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).resolve().parents[1] / "book" / "adoption.md").read_text(encoding="utf-8")
BLOCKS = dict(re.findall(r"^## ([^\n]+)\n.*?^```python\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL))


@pytest.mark.parametrize("title", BLOCKS)
def test_the_block_runs_as_it_stands(title, capsys):
    for module in re.findall(r"^(?:from|import) (\w+)", BLOCKS[title], flags=re.MULTILINE):
        pytest.importorskip(module)
    exec(compile(BLOCKS[title], title, "exec"), {"__name__": "__main__"})
    numbers = re.findall(r"\d+\.\d+", capsys.readouterr().out)
    assert numbers
