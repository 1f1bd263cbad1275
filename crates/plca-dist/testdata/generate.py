"""Reference values of the special functions, from 60-digit arithmetic.

    pip install mpmath; python generate.py

writes the JSON files beside it. Every argument is an exact double; every value is rounded once.
"""

import json
import os
import random

from mpmath import mp, mpf

mp.dps = 60
HERE = os.path.dirname(os.path.abspath(__file__))


def write(name, tables):
    """One row per line."""
    with open(os.path.join(HERE, name), "w") as out:
        out.write("{\n")
        for n, (key, rows) in enumerate(tables.items()):
            end = ",\n" if n + 1 < len(tables) else "\n"
            out.write(f'"{key}": [\n' + ",\n".join(json.dumps(r) for r in rows) + "\n]" + end)
        out.write("}\n")


def logspace(low, high, n, rng):
    """n doubles, spread evenly in their logarithm, with jitter."""
    return [10 ** (low + (high - low) * (i + rng.random()) / n) for i in range(n)]


def elementary():
    rng = random.Random(1)
    small = logspace(-12, 0, 60, rng)
    xs = small + [-x for x in small if x < 1] + [-0.5, -0.49, -0.51, 1.0, 1.1, 3.0, 1e6, -0.9, -0.999]
    with mp.workdps(80):
        one = mpf(1)
        a = [[x, float(mpf(x) - mp.log(one + mpf(x)))] for x in xs]
        b = [[x, float((one + mpf(x)) * mp.log(one + mpf(x)) - mpf(x))] for x in xs]
        qs = [x for x in xs if abs(x) <= 1] + [-1.1, -3.0, -40.0, -1e6]
        c = [[q, float(mp.exp(mpf(q)) - 1 - mpf(q))] for q in qs]
    write("elementary.json", {"x_minus_ln_1p": a, "entropy_excess": b, "exp_m1_minus_x": c})


def solve(f, d, x, steps=200):
    for _ in range(steps):
        step = f(x) / d(x)
        x -= step
        if abs(step) <= abs(x) * mpf(10) ** -55:
            break
    return x


def lambert():
    rng = random.Random(2)
    one = mpf(1)
    tables = {}
    gaps = logspace(-18, 3, 90, rng) + [1e-300, 1e-25, 0.9, 1.1, 1.9, 2.1, 39.0, 41.0, 1e10, 1e300]
    with mp.workdps(120):

        def above(g):  # p - ln(1+p) = g
            g = mpf(g)
            s = mp.sqrt(2 * g)
            p = s + s * s / 3 if g < 1 else g + mp.log(1 + g + mp.log(1 + g))
            return solve(lambda p: p - mp.log(one + p) - g, lambda p: p / (one + p), p) if g > mpf(10) ** -40 else p

        def below(g):  # e^q - 1 - q = g
            g = mpf(g)
            s = mp.sqrt(2 * g)
            q = -s - g / 3 if g < 1 else -1 - g + mp.exp(-1 - g)
            return solve(lambda q: mp.expm1(q) - q - g, lambda q: mp.expm1(q), q) if g > mpf(10) ** -40 else q

        tables["gap_wm1_plus_1"] = [[g, float(-above(g))] for g in gaps]
        tables["gap_ln_neg_w0"] = [[g, float(below(g))] for g in gaps]
        near = [-0.36787944117144233 + 2.0**-k for k in range(4, 54)]
        xs = near + [-x for x in logspace(-300, -0.7, 60, rng)] + [-5e-324, -2.5e-1, -0.25000001]
        xs = [x for x in xs if x < 0]
        tables["wm1"] = [[x, float(-1 - above(-1 - mp.log(-mpf(x))))] for x in xs]
        rows = [[x, float(-mp.exp(below(-1 - mp.log(-mpf(x)))))] for x in xs]

        def log_w0(l):  # q + e^q = l
            l = mpf(l)
            q = l if l < -1 else (mp.log(l - mp.log(l) + mp.log(l) / l) if l > 3 else (l - 1) / 2)
            return solve(lambda q: q + mp.exp(q) - l, lambda q: 1 + mp.exp(q), q)

        pos = logspace(-300, 300, 90, rng) + logspace(-3, 2, 40, rng) + [1.7976931348623157e308, 5e-324, 2.0]
        rows += [[x, float(mp.exp(log_w0(mp.log(mpf(x)))))] for x in pos]
        tables["w0"] = rows
        ls = logspace(-3, 6, 50, rng)
        ls += [-l for l in ls] + [1.0 + d for d in logspace(-15, -1, 20, rng)] + [1.0 - d for d in logspace(-15, -1, 20, rng)]
        ls += [1e300, -1e300, 0.0, 2.9999, 3.0001, -39.9, -40.1]
        ls = [l for l in ls if l != 1.0]
        tables["ln_w0_exp"] = [[l, float(log_w0(l))] for l in ls]
    write("lambert.json", tables)


if __name__ == "__main__":
    elementary()
    lambert()
