"""What looks at a fit at every check: a callback, a bar or a line."""

from __future__ import annotations

import math
from typing import Any

from ._types import Callback


def _bar(name: str, total: int) -> Any:
    """A bar of tqdm where it is installed."""
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None
    return tqdm(total=total, desc=name, unit="it", leave=True)


class Watch:
    """Called with the start, the iteration and the objective; something true ends the fit."""

    def __init__(self, name: str, callback: Callback | None, verbose: int, total: int) -> None:
        self.name, self.callback, self.total = name, callback, total
        self.verbose = int(verbose)
        self.bar = _bar(name, total) if self.verbose == 1 else None
        #: The best objective is not known here: that of the start that is furthest on is shown.
        self.furthest = -1

    def __call__(self, start: int, iteration: int, objective: float) -> bool:
        if self.bar is not None:
            if iteration >= self.furthest:
                self.furthest = iteration
                self.bar.n = min(iteration + 1, self.total)
                self.bar.set_postfix_str(f"start {start}, objective {objective:.6g}", refresh=False)
                self.bar.update(0)
        elif self.verbose:
            print(f"{self.name}: start {start}, iteration {iteration}, objective {objective:.6e}")
        return self.callback is not None and bool(self.callback(iteration, objective))

    def starting(self, start: int, done: int, of: int) -> bool:
        """Called before every step of a start that takes several."""
        if self.bar is not None:
            if self.furthest < 0:
                self.bar.set_postfix_str(f"start {start}: step {done} of {of}", refresh=False)
                self.bar.update(0)
        elif self.verbose:
            print(f"{self.name}: start {start}, step {done} of {of} before the first iteration")
        return self.callback is not None and bool(self.callback(0, math.nan))

    def close(self, iterations: int | None = None, objective: float | None = None) -> None:
        """Ends the bar where the fit ended."""
        if self.bar is None:
            return
        if iterations is not None:
            self.bar.n = iterations
            self.bar.set_postfix_str(f"objective {objective:.6g}", refresh=False)
        self.bar.refresh()
        self.bar.close()
