"""Execution of work: worker processes of this machine, another backend of joblib, or the workers of a cluster.

`Workers.run(job, groups)` calls a picklable `job` on every item of every group and gives each group's results as they
come. Nothing here knows what an item is. A group that is lost with its worker is carried out again by another one: work
must be a function of its item alone, so that it does not matter who does it, or how often it is begun.
"""

from __future__ import annotations

import abc
import atexit
import contextlib
import copy
import functools
import hashlib
import importlib
import os
import pickle
import platform
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, as_completed
from pathlib import Path
from typing import Any

import numpy as np

from dpaudit.environment import __version__
from dpaudit.errors import DpauditError, SubjectError, UsageError

ATTEMPTS = 3  # at a group whose worker died before it is given up
IDLE_SECONDS = 120  # after which local workers end by themselves
END_SECONDS = 5.0  # for a pool's end, as `dpaudit.cli.ending` has for what was registered: not measured
TIMEOUT = 15  # seconds to find a cluster
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")
VERSIONS = {"dpaudit": __version__, "numpy": np.__version__, "python": ".".join(platform.python_version_tuple()[:2])}

Job = Callable[[Any], Any]
Results = Iterator[tuple[int, list[Any], float]]
_known = threading.local()  # in a worker, its last job, a thread: threads do not share a subject's state
_pools: dict[int, Any] = {}  # of local workers, by their number: kept from one audit to the next


class Raised:
    """The result of an item whose job raised an error of dpaudit's own."""

    def __init__(self, error: DpauditError) -> None:
        self.error = error


class Packed:
    """A job as bytes, or in a file that local workers read; `digest` names it."""

    def __init__(self, job: Job, name: str) -> None:
        try:
            self.content: bytes | None = _cloudpickle().dumps(job)
        except Exception as error:  # whatever an object's own __reduce__ raises
            raise UsageError(
                f"mechanism must be one that can be sent to worker processes, got {name} ({error}). Use jobs=1."
            ) from error
        self.digest = hashlib.sha256(self.content).hexdigest()
        self.path = ""

    def in_file(self, folder: str) -> Packed:
        """The same in a file, so that it is handed over once and not with every group."""
        there = copy.copy(self)
        there.content, there.path = None, os.path.join(folder, self.digest)
        if self.content is not None and not os.path.exists(there.path):
            Path(there.path).write_bytes(self.content)
        return there

    def unpacked(self) -> Job:
        if getattr(_known, "digest", None) != self.digest:
            content = Path(self.path).read_bytes() if self.content is None else self.content
            _known.job, _known.digest = pickle.loads(content), self.digest
        job: Job = _known.job
        return job


def carry_out_group(versions: dict[str, str], packed: Packed, content: bytes) -> bytes:
    """In a worker: the results of one group of items and the seconds that they took, as bytes."""
    if versions != VERSIONS:
        wanted, found = (", ".join(f"{name} {value}" for name, value in own.items()) for own in (versions, VERSIONS))
        raise UsageError(f"workers must have {wanted}, got {found}.")
    job = packed.unpacked()
    start = time.perf_counter()
    results = [outcome(job, item) for item in pickle.loads(content)]
    return _pack((results, time.perf_counter() - start))


def outcome(job: Job, item: Any) -> Any:
    """Result of the job for an item, or `Raised`."""
    try:
        return job(item)
    except DpauditError as error:
        return Raised(error)


class WorkerDied(Exception):
    """A worker ended with the group that it had."""


class Workers(abc.ABC):
    """Pool of workers that carry out groups of items."""

    overhead: float  # seconds that a batch of groups costs beside its work, about
    slots: int  # how many groups are carried out at the same time
    is_ready: bool = True  # whether they have started: those of a cluster are there from the beginning
    attempts: int = 1  # at a group whose worker died before it is given up: a cluster makes its own

    def warm_up(self) -> None:  # noqa: B027
        """Let them start, without waiting for it."""

    def run(self, packed: Packed, groups: Sequence[Sequence[Any]]) -> Results:
        """(position of a group, its results, seconds of one worker), in the order in which they end."""
        contents = {k: _pack(list(group)) for k, group in enumerate(groups)}
        failed = 0
        while contents:
            before = len(contents)
            calls: dict[Any, int] = {}
            try:
                for k, content in contents.items():
                    calls[self._submit(packed, content)] = k
                for call, content in self._ended(list(calls)):
                    results, seconds = pickle.loads(content)
                    del contents[calls[call]]
                    yield calls[call], results, seconds
            except WorkerDied as error:
                failed = failed + 1 if len(contents) == before else 1
                if failed >= self.attempts:
                    raise SubjectError(
                        "mechanism must leave the process that runs it alive, got "
                        f"{failed} times a worker that died ({error}). Try jobs=1 to see it."
                    ) from error
            finally:  # after an interrupt, or where the consumer stopped: nobody waits for the rest
                if contents:
                    with contextlib.suppress(Exception):
                        self._cancel(list(calls))

    @abc.abstractmethod
    def _submit(self, packed: Packed, content: bytes) -> Any:
        """A call for one group."""

    @abc.abstractmethod
    def _ended(self, calls: list[Any]) -> Iterator[tuple[Any, bytes]]:
        """Each call with what it gave, in the order in which they end; `WorkerDied` where one has none to give."""

    def _cancel(self, calls: list[Any]) -> None:  # noqa: B027
        """Let go of those that have not ended."""

    def close(self) -> None:  # noqa: B027
        """Give back what was opened."""


def open_workers(jobs: int, backend: str, cluster: str | None) -> Workers | None:
    """The workers of so many processes, of a backend or of a cluster's scheduler; None: draw in this process.

    `backend` is "loky", "dask", "ray", or the name of another backend of joblib. `UsageError` if it is unknown or not
    installed, or the cluster cannot be reached.
    """
    clusters = {"dask": DaskWorkers, "ray": RayWorkers}
    if backend in clusters:
        return clusters[backend](jobs, cluster)
    if cluster is not None:
        raise UsageError(f"backend must be dask or ray where cluster is given, got {backend!r}.")
    if backend == "loky" and jobs == 1:
        return None
    import joblib

    if backend != "loky":
        try:
            joblib.Parallel(n_jobs=jobs, backend=backend)
        except (ValueError, ImportError) as error:
            raise UsageError(f"backend must be one that joblib knows, got {backend!r} ({error}).") from error
    slots = int(joblib.effective_n_jobs(jobs)) if jobs < 0 else jobs
    if slots == 1:
        return None
    return LokyWorkers(slots) if backend == "loky" else JoblibWorkers(slots, backend)


class LokyWorkers(Workers):
    """Processes of this machine. They are kept for the next audit, and end by themselves when nothing comes."""

    overhead, attempts = 0.003, ATTEMPTS

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self._starting: list[Future[None]] = []
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    @property
    def is_ready(self) -> bool:  # type: ignore[override]
        return bool(self._starting) and all(future.done() for future in self._starting)

    def warm_up(self) -> None:
        if self._starting:
            return
        with contextlib.suppress(WorkerDied), self._replaced():  # one since the last batch: the next has new ones
            self._starting = [self._pool().submit(_import_numbers) for _ in range(self.slots)]

    def _submit(self, packed: Packed, content: bytes) -> Any:
        self.warm_up()
        self._folder = self._folder or tempfile.TemporaryDirectory(prefix="dpaudit-")
        with self._replaced():
            return self._pool().submit(carry_out_group, VERSIONS, packed.in_file(self._folder.name), content)

    def _ended(self, calls: list[Any]) -> Iterator[tuple[Any, bytes]]:
        for call in as_completed(calls):
            with self._replaced():
                content = call.result()
            yield call, content

    @contextlib.contextmanager
    def _replaced(self) -> Iterator[None]:
        """End the other processes where one has died; the next call starts new ones."""
        try:
            yield
        except _loky().BrokenProcessPool as error:
            self._end()
            raise WorkerDied(type(error).__name__) from error

    def _cancel(self, calls: list[Any]) -> None:
        for call in calls:
            call.cancel()

    def close(self) -> None:
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def _pool(self) -> Any:
        if self.slots not in _pools:
            threads = str(max(1, (os.cpu_count() or 1) // self.slots))
            limits = {name: os.environ.get(name, threads) for name in THREAD_VARIABLES}
            _pools[self.slots] = _loky().ProcessPoolExecutor(
                self.slots, timeout=IDLE_SECONDS, initializer=_leave_interrupts_to_the_parent, env=limits
            )
        return _pools[self.slots]

    def _end(self) -> None:
        self._starting = []
        _end_pool(_pools.pop(self.slots, None))


class JoblibWorkers(Workers):
    """Any other backend of joblib, by its name."""

    overhead = 0.05

    def __init__(self, slots: int, backend: str) -> None:
        self.slots, self.backend = slots, backend

    def _submit(self, packed: Packed, content: bytes) -> Any:
        return functools.partial(carry_out_group, VERSIONS, packed, content)

    def _ended(self, calls: list[Any]) -> Iterator[tuple[Any, bytes]]:
        import joblib

        # Not as they come: some backends cannot.
        found = joblib.Parallel(self.slots, backend=self.backend)(joblib.delayed(call)() for call in calls)
        return zip(calls, found, strict=True)


class DaskWorkers(Workers):
    """The workers of a dask cluster: the one named, else that of this process's client, else one of this machine.

    The scheduler keeps every call, so what is lost with a worker is carried out again by another.
    """

    overhead = 0.02

    def __init__(self, jobs: int, address: str | None) -> None:
        self._distributed = distributed = _library("distributed", "dask")
        address = address or os.environ.get("DASK_SCHEDULER_ADDRESS") or None
        self._own: list[Any] = []  # what was opened here
        client = None
        if address is None:
            with contextlib.suppress(ValueError):
                client = distributed.Client.current()
        try:
            if client is None:
                count = jobs if jobs > 1 else (os.cpu_count() or 1)
                of_this_machine: Any = {"n_workers": count, "threads_per_worker": 1, "preload": [__name__]}
                options = {} if address else {**of_this_machine, "dashboard_address": None, "silence_logs": 50}
                client = distributed.Client(address, timeout=TIMEOUT, set_as_default=False, **options)
                self._own = [client]
            client.wait_for_workers(1, timeout=TIMEOUT)
        except (OSError, TimeoutError, ValueError) as error:
            self.close()
            where = address or "of this machine"
            raise UsageError(f"cluster must be a dask scheduler with workers, got {where!r} ({error}).") from error
        self._client = client
        self._jobs: dict[str, Any] = {}  # there, by digest

    @property
    def slots(self) -> int:  # type: ignore[override]
        return max(1, sum(int(threads) for threads in self._client.nthreads().values()))

    def _submit(self, packed: Packed, content: bytes) -> Any:
        if packed.digest not in self._jobs:
            # The result of a call of its own: the scheduler knows how to make it again if its holder dies.
            self._jobs[packed.digest] = self._client.submit(copy.copy, packed, key=f"dpaudit-job-{packed.digest}")
        return self._client.submit(carry_out_group, VERSIONS, self._jobs[packed.digest], content, pure=False)

    def _ended(self, calls: list[Any]) -> Iterator[tuple[Any, bytes]]:
        with self._client.as_current():
            ended = self._distributed.as_completed(calls)
        for call in ended:
            try:
                yield call, call.result()
            except self._distributed.scheduler.KilledWorker as error:
                raise WorkerDied(str(error)) from error
            except ModuleNotFoundError as error:
                raise UsageError(f"workers must have what the subject needs installed, got {error}.") from error
            except (self._distributed.CancelledError, OSError) as error:
                raise DpauditError(f"cluster must stay until the audit ends, got {error!r}.") from error

    def _cancel(self, calls: list[Any]) -> None:
        self._client.cancel(calls, force=True)

    def close(self) -> None:
        self._jobs = {}
        for opened in self._own:
            with contextlib.suppress(Exception):
                opened.close()
        self._own = []


class RayWorkers(Workers):
    """The workers of a ray cluster: the one named, else `RAY_ADDRESS`, else processes of this machine."""

    overhead = 0.02

    def __init__(self, jobs: int, address: str | None) -> None:
        self._ray = ray = _library("ray", "ray")
        self._has_started = not ray.is_initialized()
        if self._has_started:
            address = address or os.environ.get("RAY_ADDRESS") or None
            count = None if address is not None else jobs if jobs > 1 else os.cpu_count() or 1
            try:
                ray.init(address=address, num_cpus=count, include_dashboard=False, log_to_driver=False)
            except (OSError, ValueError, RuntimeError) as error:
                raise UsageError(f"cluster must be one of ray, got {address!r} ({error}).") from error
        self._call = ray.remote(max_retries=ATTEMPTS)(carry_out_group)
        self._jobs: dict[str, Any] = {}  # there, by digest

    @property
    def slots(self) -> int:  # type: ignore[override]
        return max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def _submit(self, packed: Packed, content: bytes) -> Any:
        if packed.digest not in self._jobs:
            self._jobs[packed.digest] = self._ray.put(packed)
        return self._call.remote(VERSIONS, self._jobs[packed.digest], content)

    def _ended(self, calls: list[Any]) -> Iterator[tuple[Any, bytes]]:
        ray = self._ray
        while calls:
            ended, calls = ray.wait(calls, num_returns=1)
            try:
                yield ended[0], ray.get(ended[0])
            except ray.exceptions.WorkerCrashedError as error:
                raise WorkerDied(type(error).__name__) from error
            except ray.exceptions.RayTaskError as error:
                raise (error.cause if isinstance(error.cause, DpauditError) else error) from error

    def _cancel(self, calls: list[Any]) -> None:
        for call in calls:
            with contextlib.suppress(Exception):
                self._ray.cancel(call, force=True)

    def close(self) -> None:
        self._jobs = {}
        if self._has_started:
            self._ray.shutdown()


_loky = functools.partial(importlib.import_module, "joblib.externals.loky")  # most audits ask for no processes


def _library(module: str, extra: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise UsageError(
            f"backend must be one that is installed, got {extra!r} ({error}). Use pip install 'dpaudit[{extra}]'."
        ) from error


def _pack(value: Any) -> bytes:
    content: bytes = _cloudpickle().dumps(value)
    return content


def _cloudpickle() -> Any:
    """joblib up to 1.5 brings its own; modules that are sent by value are known to both (`dpaudit.subjects`)."""
    try:
        return importlib.import_module("joblib.externals.cloudpickle")
    except ImportError:
        return importlib.import_module("cloudpickle")


def _leave_interrupts_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


async def dask_setup(worker: Any) -> None:
    """Prepare a worker of a local cluster: dask calls it by this name."""
    del worker
    _leave_interrupts_to_the_parent()


def _import_numbers() -> None:
    """Import what a worker's first group needs, before it comes."""
    importlib.import_module("dpaudit.running.worker_pool")


def _end_pool(pool: Any) -> None:
    """Kill the workers of a pool, and wait for its thread, which gives back the semaphores of the system."""
    if pool is not None:
        thread = getattr(pool, "_executor_manager_thread", None)
        pool.shutdown(wait=False, kill_workers=True)
        if thread is not None:
            thread.join(END_SECONDS)


@atexit.register
def end_pools() -> None:
    """End the local workers: in the process that started them, as a copy of it has no thread that hears of it."""
    while _pools:
        with contextlib.suppress(Exception):
            _end_pool(_pools.popitem()[1])
