"""The page for other people's trainers: every block runs as it stands, against the installed library."""

import re
import subprocess
import sys
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


@pytest.mark.deep
def test_two_processes_of_accelerate_learn_alike(tmp_path):
    (tmp_path / "block.py").write_text(BLOCKS["accelerate"], encoding="utf-8")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    command += ["--log-dir", str(tmp_path), "--redirects", "1", str(tmp_path / "block.py")]  # else prints mix
    done = subprocess.run(command, capture_output=True, text=True)
    first, second = (re.findall(r"\d+\.\d+", path.read_text()) for path in tmp_path.rglob("stdout.log"))
    assert (len(first), first) == (2, second), done.stderr  # a loss and a temperature
