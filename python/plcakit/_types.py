"""Names of the types that signatures share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Mapping, Optional, Sequence, TypeVar, Union

import numpy as np
from numpy.typing import NDArray

from .priors import Prior

if TYPE_CHECKING:
    _F = TypeVar("_F", bound=Callable[..., object])

    def available_if(check: Callable[[Any], bool]) -> Callable[[_F], _F]: ...

else:
    from sklearn.utils.metaestimators import available_if

#: An array of NumPy of any numbers.
Array = NDArray[Any]
#: What data come in: arrays, sparse matrices, frames, arrays of other libraries, nested lists.
Data = Any
#: Flags in the shape of the data, or none.
Mask = Any
#: Blocks by name.
Blocks = dict[str, Array]
#: Shapes of blocks by name; of some only the name is known.
Shapes = dict[str, Any]
#: Blocks to start from.
Start = Optional[Mapping[str, Any]]
#: Called at every check.
Callback = Callable[[int, float], object]
#: What seeds come from.
RandomState = Union[int, np.random.RandomState, np.random.Generator, None]
#: Priors by block.
Priors = Optional[Mapping[str, Union[str, Prior]]]
#: Blocks that keep their values, or some of their components or entries.
Freeze = Union[str, Sequence[str], "set[str]", Mapping[str, Union[bool, int, Sequence[int], Array, None]]]
