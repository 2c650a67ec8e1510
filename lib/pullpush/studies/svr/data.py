"""What chapter 2 trains: four protocols, between which one thing changes at a time, and the radius taken apart.

    ground = Protocols(book)
    ground.view("frozen/cnn")     # new projections on features of our trunk, which heard single events
    ground.view("random/cnn")     # the same architecture in training, from random weights
    ground.view("frozen/yamnet")  # new projections on features of a published encoder
    ground.view("tuned/yamnet")   # its upper layers in training, too
    ground.view("random/cnn/graded")  # with the relevance of all pairs; "…/recordings": tested on further recordings

Scenes, captions, dimensions and batches are the same; texts are those of a frozen sentence encoder, with new
projections, everywhere.

A radius R does three things at once: the softmax is that of the support vector (*probabilities*), the gradient reaches
the anchor through Eq. 15, which shrinks what is across the way (*Jacobian*), and a part of it goes to the positive
(*partner*). On and off in all combinations that is a 2³ design, whose empty cell is InfoNCE twice.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import permutations, product
from typing import Any

from pullpush.data.scenes.held_out import OwnHeldOutConfig
from pullpush.errors import PullPushError, unknown
from pullpush.lab import common, trunks
from pullpush.lab.compute import Ground, View
from pullpush.lab.experiments import Experiment, System, Trial
from pullpush.lab.material import PARTS, Material, pretrained, reduced
from pullpush.lab.session import Session
from pullpush.studies.taught import TaughtConfig, Truth
from pullpush.training.diagnostics import Diagnostics
from pullpush.training.frozen import encoded

TITLES: Mapping[str, str] = {
    "frozen/cnn": "our CNN, frozen",
    "random/cnn": "our CNN from random weights",
    "frozen/yamnet": "YAMNet, frozen",
    "tuned/yamnet": "YAMNet, fine-tuned",
}
# Passes, as a multiple of the profile's: the last quarter of a run then gains about a point.
PASSES: Mapping[str, int] = {"frozen/cnn": 4, "random/cnn": 4, "frozen/yamnet": 4, "tuned/yamnet": 2}
SEEDS: Mapping[str, int] = {"frozen/cnn": 10, "random/cnn": 5, "frozen/yamnet": 10, "tuned/yamnet": 5}
LEARNT = "random/cnn"  # the protocol in which negatives are told apart
GRADED, FURTHER = f"{LEARNT}/graded", f"{LEARNT}/recordings"
TESTS: Mapping[str, str] = {"new combinations": "", "held-out recordings": FURTHER}
RATE = 1e-3  # of new weights
FINE = 0.3  # where a trained encoder goes on learning, as a share of it


class Protocols(Ground):
    """The page's views by their names: those of TITLES, GRADED and FURTHER; see the top of this module."""

    name = "scenes, four protocols"

    def __init__(self, book: Session, compute_long: bool = False) -> None:
        super().__init__(reduced(book), compute_long)
        self._published = replace(self.book, settings=self.book.settings.listening)

    @property
    def parts(self) -> Sequence[str]:
        return *PARTS, "data/held_out", f"audio/{self._published.settings.audio}", "audio/upper"

    def epochs(self, protocol: str) -> int:
        """Passes over the clips."""
        return PASSES[protocol] * self.book.settings.epochs

    def rate(self, protocol: str) -> float:
        """The learning rate that a search goes out from."""
        return FINE * RATE if protocol.startswith("tuned") else RATE

    def _view(self, name: str) -> View:
        if name in TITLES:
            return self._protocol(*name.split("/"))
        if name not in (GRADED, FURTHER):
            raise unknown("protocol", name, TITLES)
        plain = self.view(LEARNT)
        if name == GRADED:
            return plain._replace(data=TaughtConfig(plain.data.config, (Truth(),)).load())
        tests = OwnHeldOutConfig(plain.data.config, takes="takes", share=1e-9).load()  # training has met all events
        return plain._replace(data=replace(tests, splits={"test": tests.split("recordings")}))

    def _protocol(self, start: str, trunk: str) -> View:
        session = self.book if trunk == "cnn" else self._published
        data, size = common.world(self.book), {"epochs": self.epochs(f"{start}/{trunk}")}
        if start == "random":
            return View(session, data, {**size, "lr": RATE})
        base = trunks.trained(pretrained(self.book)) if trunk == "cnn" else common.published_trunk(session)
        if start == "tuned":
            return View(session, encoded(data, base, level="lower"), {**size, "lr": FINE * RATE})
        return View(session, encoded(data, base), size)


def routes(names: Sequence[str]) -> list[tuple[str, str]]:
    """All ways from one dataset that is trained on to another that is tested on.

    >>> routes(["A", "B"])
    [('A', 'B'), ('B', 'A')]
    """
    if len(names) < 2:
        raise PullPushError(
            f"there is one dataset here, {' '.join(names)}: to train on one and test on another name a second as "
            "`other` in a profile"
        )
    return list(permutations(names, 2))


# ---------------------------------------------------------------- losses on one frozen trunk, which both pages read

LAB = "02-svr-lab"  # the page that keeps these experiments


def six(tau: float) -> dict[str, System]:
    """InfoNCE and SigLIP, each alone, with static and with dynamic SVR: the paper's six systems."""
    losses, shapes = {"infonce": {"tau": tau}, "siglip": {}}, ("", "+bi-static-svr", "+bi-dynamic-svr")
    return {loss + shape: (loss + shape, options) for loss, options in losses.items() for shape in shapes}


def controls(tau: float) -> dict[str, System]:
    """What stands beside them: the first loss counted twice, and the paper's foil in two readings."""
    no_radius = {"radius": 0.0, "learnable": False, "beta": 0.0}  # SVR is InfoNCE then
    return {
        TWICE: ("infonce+bi-static-svr", {**no_radius, "tau": tau}),
        "siglip+infonce": ("siglip+bi-static-svr", no_radius),
        "reweight": ("simple-reweight", {"tau": tau}),
        "reweight-softmax": ("simple-reweight", {"form": "softmax", "tau": tau}),
    }


TRUNK_SEEDS = 40  # of what is compared on the frozen trunk


def on_trunk(ground: Material, tau: float, seeds: Sequence[int]) -> tuple[Experiment, Experiment]:
    """The six on the frozen trunk, watched at some twenty steps of a run, and the controls, which leave to them what
    they are compared with.
    """
    settings, sets = ground.book.settings, ("zero-shot",) if ground.name == "scenes" else ()
    steps = -(-len(ground.data().train) // settings.batch_size) * settings.epochs
    watched = {"watch": Diagnostics(max(1, steps // 25), tau=tau), "evaluations": ("retrieval", "closeness", *sets)}
    frozen = Experiment.of("frozen", six(tau), seeds=seeds, long=True, **watched)
    return frozen, Experiment.of("controls", controls(tau), seeds=seeds, long=True)


# ---------------------------------------------------------------- the radius taken apart

Systems = Mapping[str, Mapping[str, System]]  # protocol → label → system
EFFECTS = {"probabilities": "P", "jacobian": "J", "partner": "A"}  # A: audio that pushes audio
SOFTMAX = {"certainty": "C", "shares": "S", "vector": "V"}  # of the probabilities
RADIUS = 0.6  # fixed; early in training less than a pair's distance, late in it more than that of most
NEARER = 0.3  # that most pairs are further apart than until the end
TWICE = "twice"


def factorial(
    radius: float = RADIUS, effects: Mapping[str, str] = EFFECTS, term: str = "svr-parts", name: str = "SVR"
) -> dict[str, System]:
    """InfoNCE + SVR of a fixed radius with every combination of its effects: "twice", "SVR:P", …, "SVR:PJA".

    effects: switches of a loss term, and the letter of each.

    >>> list(factorial())
    ['twice', 'SVR:A', 'SVR:J', 'SVR:JA', 'SVR:P', 'SVR:PA', 'SVR:PJ', 'SVR:PJA']
    """
    found: dict[str, System] = {}
    for switches in product((False, True), repeat=len(effects)):
        on = dict(zip(effects, switches, strict=True))
        letters = "".join(effects[effect] for effect in effects if on[effect])
        found[f"{name}:{letters}" if letters else TWICE] = (f"infonce+{term}", {"radius": radius, **on})
    return found


# InfoNCE whose push is changed across the way, and in nothing else: the paper's reason in its purest form.
SCALED: Mapping[str, System] = {
    **{f"across ×{k:g}": ("scaled-push", {"perpendicular": k}) for k in (0.0, 0.25, 0.5, 1.5)},
    **{f"sideways ×{k:g}": ("scaled-push", {"perpendicular": k, "part": "sideways"}) for k in (0.0, 0.5)},
}
# Simpler losses that let go of pairs which fit, or pull harder.
SIMPLER: Mapping[str, System] = {
    "hard pairs": ("focal", {"gamma": 0.5, "detach": True}),
    "+ focal": ("infonce+focal", {"gamma": 1.0, "detach": False}),
    "+ margin": ("infonce+additive-margin", {"margin": -0.3}),
    "reweight": ("simple-reweight", {"weight": 0.5, "scalar_lr": 0.0}),
}
PLAIN: Mapping[str, System] = {"infonce": ("infonce", {}), "SVR, learnt R": ("infonce+bi-dynamic-svr", {})}
SYSTEMS: Mapping[str, System] = {**PLAIN, **factorial(), **SCALED, **SIMPLER}
FIXED = {name: SYSTEMS[name] for name in ("infonce", TWICE, "SVR:J", "SVR:PJA")}  # beside those of another radius
DECISIVE = ("infonce", TWICE, "SVR:P", "SVR:J", "SVR:A", "SVR:PJA")  # all that fine-tuning, which is slow, trains
BETWEEN = ("across ×0.25", "sideways ×0.5", "+ focal")  # left out where an encoder is in training

# Temperature, and rate as a multiple of the protocol's own: the same budget for every system.
POINTS = ((0.05, 1.0), (0.1, 1.0), (0.15, 1.0), (0.2, 1.0), (0.1, 0.5), (0.1, 2.0))
EVALUATIONS = ("recall-at-1",)  # of hundreds of runs nothing else is kept
SHORTER = 2  # how much shorter a run of the search is
APART = 1000  # from the first seed to that of the search, which no comparison uses
CONTROLS = 5  # seeds of what stands beside the comparison
TRIED = {"frozen/cnn": (*DECISIVE, "SVR:PJ", "SVR:PA", "SVR:JA", "across ×0.5", "sideways ×0"), "random/cnn": DECISIVE}


def searched(ground: Protocols, *, seed: int, name: str = "search", systems: Systems | None = None) -> Experiment:
    """The search on validation: every system of a protocol at the same points, in runs half as long.

    systems: default: all of the page.
    """
    trials = []
    for protocol, named in (systems or systems_of(ground)).items():
        epochs = max(1, ground.epochs(protocol) // SHORTER)
        for system, (recipe, overrides) in named.items():
            for tau, factor in POINTS[:2] if _few(ground) else POINTS:
                point = {"tau": tau, "lr": round(factor * ground.rate(protocol), 6)}
                options = {**overrides, "epochs": epochs, **point}
                trials.append(Trial(system, recipe, options, {"protocol": protocol, **point}, data=protocol))
    return Experiment(name, tuple(trials), (seed + APART,), evaluations=EVALUATIONS, long=True)


def compared(
    ground: Protocols,
    points: Mapping[tuple[str, str], Mapping[str, Any]],
    *,
    seed: int,
    name: str = "effects",
    systems: Systems | None = None,
) -> Experiment:
    """The comparison, every system at its own point: (protocol, system) → options, see `tuning.best_points`.

    systems: default: all of the page; of others fewer seeds are trained.
    """
    trials = []
    for protocol, named in (systems or systems_of(ground)).items():
        seeds = range(seed, seed + (2 if _few(ground) else CONTROLS if systems else SEEDS[protocol]))
        for system, (recipe, overrides) in named.items():
            if protocol.startswith("tuned") and system not in DECISIVE:
                continue
            options = {**overrides, **points.get((protocol, system), {})}
            trials.append(Trial(system, recipe, options, {"protocol": protocol}, data=protocol, seeds=tuple(seeds)))
    watch = Diagnostics(every=2 if _few(ground) else 40, tau=0.07)
    return Experiment(name, tuple(trials), trials[0].seeds, evaluations=EVALUATIONS, watch=watch, long=True)


def told_apart(ground: Protocols, point: Mapping[str, Any], *, seed: int) -> Experiment:
    """InfoNCE at one point, and without the sideways push of those negatives that fit an anchor in part, or of those
    that do not fit it at all. Runs are half as long; further recordings are those of the book's own bank.
    """
    tests = TESTS if common.world(ground.book).config.bank == "tuxpaint" else {name: "" for name in [*TESTS][:1]}
    size, trials = {"epochs": max(1, ground.epochs(LEARNT) // SHORTER)}, []
    for (related, unrelated), (test, view) in product([(1.0, 1.0), (0.0, 1.0), (1.0, 0.0)], tests.items()):
        kappas = {"related": related, "unrelated": unrelated}
        where = {**kappas, "test": test}
        trials.append(Trial("graded push", "graded-push", {**kappas, **point, **size}, where, data=GRADED, test=view))
    seeds = range(seed, seed + (2 if _few(ground) else SEEDS[LEARNT]))
    return Experiment("negatives", tuple(trials), tuple(seeds), evaluations=("recall-at-1", "graded"), long=True)


def systems_of(ground: Protocols) -> Systems:
    """Protocol → its systems; in a profile of few seeds only some."""
    if _few(ground):
        return {protocol: {name: SYSTEMS[name] for name in names} for protocol, names in TRIED.items()}
    fewer = {name: system for name, system in SYSTEMS.items() if name not in BETWEEN}
    return {name: SYSTEMS if name.startswith("frozen") else fewer for name in TITLES}


def _few(ground: Protocols) -> bool:
    return ground.book.settings.seeds < 3
