"""Coverage of `pullpush.metrics.inference.difference` by simulation, in percent of intervals that hold the true mean.

    python benchmarks/interval_coverage.py --draws 20000 --level 0.95

Rows: seeds, clips, rest (contribution of seed × clip to the variance of the mean; that of clips is 1). Columns: that of
seeds. The mean squares of a balanced normal design are scaled χ² and independent of the mean, so they are drawn
instead of the scores, and the coverage given them is exact: Φ(±half/σ).

Bar: 93–97 % in every cell for 95 %. The rule that textbooks give, Satterthwaite with components raised to 0, is printed
beside it.
"""

import argparse

import numpy as np
from scipy import special

from pullpush.metrics.inference import Array, standard_error


def satterthwaite(row: Array, column: Array, rest: Array, rows: int, columns: int) -> tuple[Array, Array]:
    """√V of the components raised to 0, df of Satterthwaite (1946) for their sum."""
    row, column = np.maximum(row, 0), np.maximum(column, 0)
    total = row + column + rest
    squares = row**2 / (rows - 1) + column**2 / (columns - 1) + rest**2 / ((rows - 1) * (columns - 1))
    return np.sqrt(total), total**2 / squares


RULES = {"this rule": standard_error, "Satterthwaite": satterthwaite}


def coverage(
    seeds: int, clips: int, seed: float, rest: float, *, draws: int, level: float, generator: np.random.Generator
) -> list[float]:
    """Coverage of each rule where seeds, clips and the rest contribute seed, 1 and rest to the variance of the mean."""
    true = np.array([seed + rest, 1 + rest, rest])
    degrees = np.array([seeds - 1, clips - 1, (seeds - 1) * (clips - 1)])
    row, column, both = true[:, None] * generator.chisquare(degrees[:, None], (3, draws)) / degrees[:, None]
    covered = []
    for rule in RULES.values():
        error, df = rule(row - both, column - both, both, seeds, clips)
        half = special.stdtrit(df, (1 + level) / 2) * error
        covered.append(100 * float(np.mean(2 * special.ndtr(half / np.sqrt(seed + 1 + rest)) - 1)))
    return covered


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[2, 3, 5, 10, 20])
    parser.add_argument("--clips", type=int, nargs="+", default=[100, 500])
    parser.add_argument("--seed-variance", type=float, nargs="+", default=[0.1, 1.0, 10.0])
    parser.add_argument("--rest-variance", type=float, nargs="+", default=[0.0, 1.0, 10.0])
    parser.add_argument("--draws", type=int, default=20_000)
    parser.add_argument("--level", type=float, default=0.95)
    options = parser.parse_args()
    generator = np.random.default_rng(0)
    print("seeds clips  rest  " + "   ".join(f"{rule:<{6 * len(options.seed_variance)}}" for rule in RULES))
    for seeds in options.seeds:
        every = []
        for clips in options.clips:
            for rest in options.rest_variance:
                cells = [
                    coverage(seeds, clips, seed, rest, draws=options.draws, level=options.level, generator=generator)
                    for seed in options.seed_variance
                ]
                rules = zip(*cells, strict=True)
                every += cells
                line = "   ".join("".join(f"{cell:6.1f}" for cell in cells) for cells in rules)
                print(f"{seeds:5d} {clips:5d} {rest:5g}  {line}")
        columns = zip(RULES, np.transpose(every), strict=True)
        bounds = [f"{rule}: {cells.min():.1f} to {cells.max():.1f}" for rule, cells in columns]
        print(f"{seeds:5d} seeds, all: " + ", ".join(bounds))


if __name__ == "__main__":
    main()
