"""A cell that cannot be measured on data of one's own says why, what needs it too, and the others run."""

import pytest
from IPython.core.interactiveshell import InteractiveShell

from pullpush.errors import DataNotFoundError, PullPushError, SettingError
from pullpush.lab import gaps


@pytest.fixture
def shell(monkeypatch):
    """An IPython that goes on after errors, and what it has displayed."""
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance()
    shell.shown = []
    monkeypatch.setattr(gaps, "get_ipython", lambda: shell)
    monkeypatch.setattr(gaps, "_told_of", set())
    monkeypatch.setattr(gaps, "_expecting", [])
    monkeypatch.setattr(gaps, "display", lambda text, **options: shell.shown.append((text.data, options)))
    shell.user_ns |= {error.__name__: error for error in (DataNotFoundError, PullPushError, SettingError)}
    yield shell
    InteractiveShell.clear_instance()


@pytest.fixture
def own(shell):
    """The same, after the cell that opens data of one's own."""
    shell.user_ns["allow"] = gaps.allow
    assert shell.run_cell("allow('the dataset mine')").success
    assert "runs on the dataset mine" in shell.shown.pop()[0]
    return shell


def cells(shell, *sources: str) -> list[bool]:
    return [shell.run_cell(source, store_history=True).success for source in sources]


def test_without_own_data_an_error_is_an_error(shell, capsys):
    assert cells(shell, "raise PullPushError('no French')") == [False]
    assert not gaps.allowed()
    assert shell.shown == []


def test_the_cell_that_opens_the_data_must_not_fail_itself(shell, capsys):
    shell.user_ns["allow"] = gaps.allow
    assert cells(shell, "allow('mine')\nraise PullPushError('no such folder')") == [False]
    assert cells(shell, "raise PullPushError('no French')") == [False]


def test_a_gap_is_told_and_what_needs_it_follows(own, capsys):
    assert cells(own, "print(b)") == [False], "a name that nobody ever set is a fault of the page"
    assert (
        cells(own, "a = 2\nif a:\n    raise PullPushError('these data have no French')\nb = 3", "print(b)")
        == [True] * 2
    )
    first, second = own.shown
    assert first[0] == "**Not measured on these data.** These data have no French."
    assert second[0].endswith("This needs `b`, which could not be made above.")
    assert [options["metadata"] for _, options in own.shown] == [{"gap": {"foreseen": True, "not kept": False}}] * 2
    assert own.user_ns["a"] == 2


def test_what_users_write_is_shown_and_never_run(own):
    assert cells(own, "raise PullPushError('no clip <img src=x onerror=alert(1)>')") == [True]
    assert own.shown[0][0].endswith("No clip &lt;img src=x onerror=alert(1)&gt;.")


def test_an_older_value_does_not_pass_for_the_one_that_is_missing(own):
    assert all(cells(own, "table = 'of before'", "table = [][0]", "table.upper()"))
    assert [options["metadata"]["gap"]["foreseen"] for _, options in own.shown] == [False, False]
    assert "IndexError" in own.shown[0][0]
    assert cells(own, "table = 'again'", "assert table == 'again'") == [True, True]
    assert len(own.shown) == 2


@pytest.mark.parametrize(
    "error", ["DataNotFoundError('fetch it')", "SettingError('a typo')", "MemoryError()", "KeyboardInterrupt()"]
)
def test_what_the_user_has_to_mend_first_ends_the_chapter(own, error, capsys):
    assert cells(own, f"raise {error}") == [False]
    assert own.shown == []


def test_a_page_goes_on_where_an_experiment_was_not_kept_and_nowhere_else(shell, capsys):
    shell.user_ns |= {"expect": gaps.expect, "NotKeptError": gaps.NotKeptError}
    assert cells(shell, "expect()") == [True]
    assert not gaps.found()
    made = "if True:\n    raise NotKeptError('*radius* takes long')\nscores = 1"
    assert cells(shell, made, "scores.table", "after = 2") == [True, True, True]
    assert [text for text, _ in shell.shown] == [
        "**Not measured for these parameters.** *radius* takes long.",
        "**Not measured for these parameters.** This needs `scores`, which could not be made above.",
    ]
    assert all(options["metadata"]["gap"]["not kept"] for _, options in shell.shown)
    assert gaps.found()
    assert cells(shell, "raise PullPushError('a fault of the page')", "nobody_set_this") == [False, False]
