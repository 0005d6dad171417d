"""What a plugin imports: `from infimum.plugins import hook`, the marker of its hook implementations.

Nothing else stands here, so that a plugin's entry module stays light.
"""

from __future__ import annotations

import pluggy

hook = pluggy.HookimplMarker("infimum")

__all__ = ["hook"]
