"""Warnings that name the line of the user."""

from __future__ import annotations

import sys
import warnings


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warns where this package was called, also through methods that scikit-learn wraps."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).split(".")[0] in ("plcakit", "sklearn"):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
