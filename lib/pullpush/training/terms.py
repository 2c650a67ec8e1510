"""The summands of an objective, as data: a loss by its name, its weight and its options."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pullpush.errors import check_all_known
from pullpush.losses import TERMS, Loss
from pullpush.losses.offer import COLUMNS
from pullpush.settings import check_options, check_setting


@dataclass(frozen=True)
class Term:
    """One summand of the objective.

    name: of a loss in TERMS; weight: its factor; options: keyword arguments of the loss; those equal to its defaults
    are dropped, so that terms that do the same are equal (all but `tau`, which a recipe looks after).

    Raises:
        UnknownNameError: no such term, or it has no such option.
        SettingError: an option of another type.
    """

    name: str
    weight: float = 1.0
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_setting("name of a term", self.name, str)
        check_setting("weight", self.weight, float, of=f"term {self.name!r}")
        check_setting("options", self.options, Mapping[str, Any], of=f"term {self.name!r}")
        defaults = TERMS[self.name].defaults
        check_all_known(f"option of {self.name}", self.options, defaults)
        check_options(TERMS[self.name].make, self.options, of=f"term {self.name!r}")
        kept = {name: value for name, value in self.options.items() if name == "tau" or value != defaults[name]}
        object.__setattr__(self, "options", kept)

    @property
    def settings(self) -> dict[str, Any]:
        """All options, the defaults included."""
        return TERMS[self.name].defaults | dict(self.options)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of clips that hold what it needs or uses."""
        loss = TERMS[self.name].make
        return tuple(COLUMNS[name] for name in (*loss.needs, *loss.uses) if name in COLUMNS)

    def create(self, batch_size: int | None = None) -> Loss:
        """The loss, not yet weighted.

        batch_size: largest batch that will come, for losses whose parameters depend on it, unless an option says so.
        """
        card = TERMS[self.name]
        sized = {"batch_size": batch_size} if batch_size and "batch_size" in card.defaults else {}
        return card.make(**{**sized, **self.options})


def check_one_learner(terms: Sequence[Term]) -> None:
    """Require that a term which is to learn its temperature has one of its own, or is the first to have one.

    Raises:
        ValueError: it shares that of a term whose temperature is fixed, and would learn nothing.
    """
    tempered = [term for term in terms if TERMS[term.name].make.shares_temperature and "tau" in term.settings]
    for term in tempered[1:]:
        fixed = not tempered[0].settings.get("learnable", False)
        if fixed and "tau" not in term.options and term.options.get("learnable"):
            raise ValueError(
                f"{term.name!r} is to learn its temperature, but shares that of {tempered[0].name!r}, which is fixed: "
                f"name {term.name!r} first"
            )


def one_temperature(terms: tuple[Term, ...]) -> tuple[Term, ...]:
    """The terms without temperatures that they have anyway: the first its default, the others that of the first.

    So recipes that do the same are equal. A term beside a learnable temperature keeps a fixed one that it names, and a
    loss that does not share its temperature has nothing to do with the others.
    """
    first: Term | None = None
    result = []
    for term in terms:
        tau = term.options.get("tau")
        shares = TERMS[term.name].make.shares_temperature
        if first is None or not shares:
            redundant = tau == TERMS[term.name].defaults.get("tau")
        else:
            redundant = tau == first.settings["tau"] and not first.settings.get("learnable", False)
        if tau is not None and redundant:
            term = replace(term, options={name: value for name, value in term.options.items() if name != "tau"})
        if first is None and shares and "tau" in term.settings:
            first = term
        result.append(term)
    return tuple(result)
