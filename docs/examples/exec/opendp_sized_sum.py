"""An old release audited in an environment of its own: the sum of a dataset of known size in OpenDP 0.2.2.

    python -m venv .venv-opendp-0.2 && .venv-opendp-0.2/bin/pip install "opendp==0.2.2"
    dpaudit audit "exec:.venv-opendp-0.2/bin/python docs/examples/exec/opendp_sized_sum.py" --samples 5000

The program needs nothing but OpenDP. It states the least epsilon that the library's own relation accepts when one of
three records is replaced (symmetric distance 2). That was computed in whole numbers and rounded down: 2 nats, where the
sum of values in [0, 3] moves by 3 at scale 1 (opendp/opendp, issue 314; fixed later).
"""

import json
import sys

from opendp.meas import make_base_geometric
from opendp.mod import enable_features
from opendp.trans import make_sized_bounded_sum

enable_features("contrib")
MAX_VALUE = 3
release = make_sized_bounded_sum(size=3, bounds=(0, MAX_VALUE)) >> make_base_geometric(scale=1.0)
EPSILON = next(epsilon for epsilon in (step / 10 for step in range(100)) if release.check(2, epsilon))
HELLO = {
    "type": "hello",
    "protocol": 1,
    "name": "OpenDP 0.2.2 sized bounded sum",
    "claim": f"eps={EPSILON:g}",
    "pairs": [[[0, 1, 1], [MAX_VALUE, 1, 1]]],
}

for line in sys.stdin:
    request = json.loads(line)
    if request["type"] == "hello":
        answer = HELLO
    else:
        answer = {"id": request["id"], "outputs": [release(request["input"]) for _ in range(request["size"])]}
    print(json.dumps(answer), flush=True)
