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


# Uniform expansions in 1/w with 40 terms: for w > 600 the series are too slow.


def poly_mul(a, b):
    r = [mpf(0)] * (len(a) + len(b) - 1)
    for i, x in enumerate(a):
        if x:
            for j, y in enumerate(b):
                r[i + j] += x * y
    return r


def poly_add(a, b):
    n = max(len(a), len(b))
    return [(a[i] if i < len(a) else 0) + (b[i] if i < len(b) else 0) for i in range(n)]


def debye(terms):
    """u_k(t) of DLMF 10.41.10, coefficients of t."""
    u = [[mpf(1)]]
    for k in range(terms):
        d = [i * u[k][i] for i in range(1, len(u[k]))] or [mpf(0)]
        a = [x / 2 for x in poly_mul([0, 0, mpf(1), 0, mpf(-1)], d)]
        g = poly_mul([mpf(1), 0, mpf(-5)], u[k])
        u.append(poly_add(a, [mpf(0)] + [g[i] / (i + 1) / 8 for i in range(len(g))]))
    return u


with mp.workdps(120):
    DEBYE = debye(40)


def ln_0f1(nu, z):
    """ln 0F1(; nu+1; z^2/4), exact nu and z."""
    w = mp.sqrt(nu * nu + z * z)
    x = z * z / 4
    if w < 600 or x < nu:
        total, term, n = mpf(1), mpf(1), 0
        while term > total * mpf(10) ** -(mp.dps + 5) * min(1, x + mpf(10) ** -700):
            n += 1
            term *= x / (n * (nu + n))
            total += term
        rest = total - 1 if x > mpf(10) ** -20 else x / (nu + 1) + x * x / (2 * (nu + 1) * (nu + 2))
        return mp.log(total) if x > 1 else mp.log1p(rest)
    t = nu / w
    # I_nu(z) = e^w / sqrt(2 pi w) ((w - nu)/z)^nu sum u_k(t)/nu^k, with u_k(t)/nu^k = [u_k(t)/t^k]/w^k.
    s = mpf(0)
    for k, u in enumerate(DEBYE):
        s += mp.polyval(u[k:][::-1], t) / w**k
    ln_i = w - mp.log(2 * mp.pi * w) / 2 - nu * mp.log((w + nu) / z) + mp.log(s)
    return ln_i + mp.loggamma(nu + 1) - nu * mp.log(z / 2)


def ln_sk(v, p, q):
    nu = abs(v)
    c, o = (p, q) if v >= 0 else (q, p)
    return nu * mp.log(c) - p - q - mp.loggamma(nu + 1) + ln_0f1(nu, 2 * mp.sqrt(p * q))


def bessel():
    rng = random.Random(3)
    tables = {}
    nus = [0.0, 1e-9, 0.3, 0.5, 1.0, 2.0, 7.5, 15.0, 16.0, 17.25, 29.0, 29.99, 30.0, 31.0, 100.0, 1234.5, 1e5, 3e6, 1e8]
    zs = [1e-300, 1e-160, 1e-20, 1e-5, 0.1, 1.0, 2.5, 5.0, 10.0, 20.0, 29.0, 29.9999, 30.0, 31.0, 60.0]
    zs += [200.0, 1e3, 1e5, 1e8, 1e12, 1e100, 1e160, 1e300]
    pairs = [(n, z) for n in nus for z in zs]
    pairs += [(rng.uniform(0, 32), rng.uniform(0, 32)) for _ in range(150)]
    pairs += [(a, b) for a, b in zip(logspace(-3, 8, 100, rng), rng.sample(logspace(-3, 9, 100, rng), 100))]
    with mp.workdps(120):

        def rho(nu, z):
            nu, z = mpf(nu), mpf(z)
            w = mp.sqrt(nu * nu + z * z)
            if w < 600 or z < nu / 100:
                return mp.exp(ln_0f1(nu + 1, z) - ln_0f1(nu, z)) / (nu + 1)
            with mp.workdps(400):
                # ln 0F1 is up to 1e300: digits for the difference.
                return mp.exp(ln_0f1(nu + 1, z) - ln_0f1(nu, z)) / (nu + 1)

        tables["rho"] = [[n, z, float(rho(n, z))] for n, z in pairs]
        pairs = [(n, x) for n in nus for x in [1e-300, 1e-100, 1e-8, 0.1, 3.0, 29.0, 224.0, 226.0, 500.0, 1e4, 1e8, 1e16, 1e100, 1e300]]
        pairs += [(rng.uniform(0, 40), rng.uniform(0, 300)) for _ in range(100)]
        pairs += [(n, n * rng.uniform(0.5, 30)) for n in logspace(0, 8, 60, rng)]
        pairs += [(a, b) for a, b in zip(logspace(-3, 8, 60, rng), rng.sample(logspace(-3, 17, 60, rng), 60))]
        tables["ln_0f1"] = [[n, x, float(ln_0f1(mpf(n), 2 * mp.sqrt(mpf(x))))] for n, x in pairs]
    write("bessel.json", tables)


def skellam():
    rng = random.Random(4)
    points = []
    for _ in range(250):
        p, q = 10 ** rng.uniform(-6, 8), 10 ** rng.uniform(-6, 8)
        sd = (p + q) ** 0.5
        points.append((float(round(rng.gauss(p - q, 3 * sd + 2))), p, q))
    for _ in range(150):
        p, q = rng.uniform(0, 25), rng.uniform(0, 25)
        points.append((float(rng.randint(-40, 40)), p, q))
    for _ in range(60):
        points.append((rng.uniform(-60, 60), 10 ** rng.uniform(-3, 2), 10 ** rng.uniform(-3, 2)))
    points += [(v, p, q) for v in (0.0, 1.0, -3.0, 1e3) for p, q in ((1e-300, 1e-300), (1e-12, 1e6), (1e100, 1e100), (1e300, 1e300), (1e-200, 5.0))]
    tables = {}
    with mp.workdps(400):
        tables["ln_pmf"] = [[v, p, q, float(ln_sk(mpf(v), mpf(p), mpf(q)))] for v, p, q in points]

        def divergence(v, p, q):
            v, p, q = mpf(v), mpf(p), mpf(q)
            w = mp.sqrt(v * v + 4 * p * q)
            x, y = (w + v) / 2, (w - v) / 2
            return x * mp.log(x / p) - x + p + y * mp.log(y / q) - y + q

    # e^t of (-3; 1e-300, 1e-300) cancels 600 digits.
    with mp.workdps(1300):
        near = [(p - q) * (1 + e) for p, q, e in [(5.0, 2.0, 1e-9), (1e8, 3.0, 1e-12), (2.0, 700.0, -1e-6)]]
        extra = [(near[0], 5.0, 2.0), (near[1], 1e8, 3.0), (near[2], 2.0, 700.0)]
        tables["divergence"] = [[v, p, q, float(divergence(v, p, q))] for v, p, q in points + extra]
    with mp.workdps(400):
        tables["poisson"] = [
            [n, c, float(mpf(n) * mp.log(mpf(c)) - mpf(c) - mp.loggamma(mpf(n) + 1))]
            for n, c in [(n, c) for n in (0.0, 1e-300, 1e-5, 0.5, 1.0, 3.0, 15.0, 15.5, 16.0, 40.0, 1e4, 1e8, 1e15)
                         for c in (1e-300, 1e-3, 0.7, 1.0, 15.0, 41.0, 1e4 + 30, 1e8 + 1234, 1e15, 1e300)]
        ]
    write("skellam.json", tables)


def tails():
    """P(V <= v) and P(V > v): the smaller by summation away from the mean, the other its complement."""
    rng = random.Random(6)
    points = [(0, 0.5, 0.5), (1000, 0.5, 0.5), (-5, 3.0, 0.0), (7, 3.0, 0.0), (-4, 0.0, 9.0), (-200, 0.0, 250.0), (300, 250.0, 0.0)]
    for s in (1, 10, 60, 110, 400, 3000):
        for d in (-9, -4, -1, 0, 0.5, 2, 6, 12):
            p = s * rng.random()
            q = s - p
            points.append((round(p - q + d * s**0.5), p, q))

    def upper(k, p, q):  # P(V >= k), k above the mean
        if p == 0:
            return sum((mp.exp(-q) * q**-j / mp.factorial(-j) for j in range(k, 1)), mpf(0))
        total = mpf(0)
        while True:
            term = mp.exp(ln_sk(mpf(k), p, q)) if q else mp.exp(-p) * p**k / mp.factorial(k)
            total += term
            if term < total * mpf(10) ** -25:
                return total
            k += 1

    rows = []
    with mp.workdps(40):
        for v, p, q in points:
            a, b = mpf(p), mpf(q)
            if v < p - q:
                low = upper(-v, b, a) if v >= 0 or q else mpf(0)
                rows.append([v, p, q, float(low), float(1 - low)])
            else:
                high = upper(v + 1, a, b)
                rows.append([v, p, q, float(1 - high), float(high)])
    write("tails.json", {"cdf": [r[:4] for r in rows], "sf": [r[:3] + r[4:] for r in rows]})


def diffnomial():
    """Variance of the lesser total of counts with totals P, Q that differ by v."""
    rng = random.Random(7)
    points = [(v, 2.0**a, 2.0**b) for v in (0, 3, 40, 1000, 10**9) for a in (-60, -4, 2, 4, 9, 30, 50) for b in (-20, 1, 3, 40)]
    points += [(rng.randrange(60), rng.uniform(0, 20), rng.uniform(0, 20)) for _ in range(60)]
    rows = []
    with mp.workdps(120):
        for v, p, q in points:
            x = mpf(p) * mpf(q)
            z = 2 * mp.sqrt(x)
            l0, l1, l2 = (ln_0f1(mpf(v + i), z) for i in range(3))
            rho0, rho1 = mp.exp(l1 - l0) / (v + 1), mp.exp(l2 - l1) / (v + 2)
            rows.append([v, p, q, float(x * rho0 * (1 + x * (rho1 - rho0)))])
    write("diffnomial.json", {"variance": rows})


def digamma():
    rng = random.Random(5)
    xs = logspace(-300, -3, 60, rng) + logspace(-3, 2, 200, rng) + logspace(2, 300, 60, rng)
    xs += [1.0, 2.0, 1.5, 10.0, 9.999, 12.0, 11.999, 0.5]
    root = mp.findroot(mp.digamma, 1.4616)
    near = [float(root)] + [float(root) + d * 10.0**-k for k in range(1, 16) for d in (1, -1, 0.3)] + [rng.uniform(1.2, 1.8) for _ in range(60)]
    tables = {}
    with mp.workdps(60):
        tables["digamma"] = [[x, float(mp.digamma(mpf(x)))] for x in xs + near]
        tables["trigamma"] = [[x, float(mp.polygamma(1, mpf(x)))] for x in xs + near if x > 1e-150]
        tables["exp_digamma"] = [[x, float(mp.exp(mp.digamma(mpf(x))))] for x in xs + near if x > 1e-4]
        tables["ln_gamma"] = [[x, float(mp.loggamma(mpf(x)))] for x in xs + near]
        tables["stirling_error"] = [
            [x, float(mp.loggamma(mpf(x) + 1) - (mpf(x) + 0.5) * mp.log(mpf(x)) + mpf(x) - mp.log(2 * mp.pi) / 2)]
            for x in logspace(-2, 12, 80, rng) + [16.0, 15.9999]
        ]
    ys = [-y for y in logspace(-3, 15, 60, rng)] + logspace(-3, 2.8, 60, rng) + [0.0, -1e300, -1e160, 20.0, 20.01, 709.0]
    ys += [rng.uniform(-3, 3) for _ in range(60)]

    def inverse(y):
        y = mpf(y)
        if y < -(10**14):
            return -1 / (y + mp.euler - mp.zeta(2) / y)
        x = mp.exp(y) + 0.5 if y > -2.22 else -1 / (y + mp.euler)
        return solve(lambda x: mp.digamma(x) - y, lambda x: mp.polygamma(1, x), x)

    tables["inverse_digamma"] = [[y, float(inverse(y))] for y in ys]
    write("digamma.json", tables)


if __name__ == "__main__":
    elementary()
    lambert()
    bessel()
    skellam()
    digamma()
    tails()
    diffnomial()
