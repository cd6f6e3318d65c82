"""`np`: numpy if it is installed, otherwise (in a browser) `plain_arrays`, the subset of numpy that the evaluation of a run needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
else:
    try:
        import numpy as np
    except ImportError:
        from fairlane import plain_arrays as np

__all__ = ["np"]
