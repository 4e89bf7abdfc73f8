"""What names an epoch in saved evidence: a digest of all that was fixed before its draws were counted."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any


def epoch_id(fixed: Mapping[str, Any]) -> str:
    """16 hexadecimal digits for what an epoch fixed before its draws were counted."""
    return hashlib.sha256(json.dumps(fixed, sort_keys=True).encode("utf-8", "surrogatepass")).hexdigest()[:16]
