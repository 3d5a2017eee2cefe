"""Many problems on all cores."""

import collections
import concurrent.futures
import itertools
import os
import threading

from ._arrays import thread_count
from ._device import devices_in_turn
from ._once import solve, solve_until
from ._options import check_options, with_options_of


class ProblemError(ValueError):
    """One of many problems could not be solved; ``index`` says which, ``__cause__`` why."""

    def __init__(self, index, error):
        super().__init__(f"problem {index}: {error}")
        self.index = index
        self.__cause__ = error


@with_options_of(solve)
def solve_each(problems, *, threads=0, errors="raise", device=None, **options):
    """Solve problems one after the other over all cores, and yield each result as soon as it and its predecessors
    are ready. Problems are read on demand, so they may come from a generator of any length.

    A problem is a dictionary of options of ``solve`` (with ``image``, if there is one); ``options`` are common to
    all. A problem that cannot be solved raises ``ProblemError`` with its index, or with ``errors="return"`` takes
    the place of its result, and the others continue. Ctrl-C, or closing the generator, stops the problems that are
    being solved within an iteration. With ``device="cuda"`` and several GPUs the problems are spread over them.

    >>> import numpy as np
    >>> problems = [{"unary": np.zeros((2, 4, 5))}, {"unary": "nonsense"}, {"unary": np.ones((2, 4, 5))}]
    >>> for result in solve_each(problems, method="mf", errors="return"):
    ...     print(type(result).__name__, getattr(result, "index", None))
    Result None
    ProblemError 1
    Result None
    """
    check_options(solve_each, options)

    def one(item, stop):
        problem, where = item
        problem = dict(options, **{"device": where, **problem})
        return solve_until(stop.is_set, problem.pop("image", None), threads=1, **problem)

    spread = itertools.cycle(devices_in_turn(device))
    return work_on_each(zip(problems, spread), one, threads, errors)


def work_on_each(items, one, threads, errors):
    """The results of ``one(item, stop)`` over all cores, in order, as they come. ``stop`` is an event that is set
    when the rest is no longer needed."""
    if errors not in ("raise", "return"):
        raise ValueError(f"errors is {errors!r}; it must be 'raise' or 'return'")
    threads = thread_count(threads)
    if threads < 0:
        raise ValueError(f"threads is {threads}; it must not be negative")
    threads = threads or cores()
    stop = threading.Event()

    def results():
        pool = concurrent.futures.ThreadPoolExecutor(threads)
        waiting, source = collections.deque(), enumerate(items)
        try:
            while True:
                while len(waiting) < 2 * threads:
                    index, item = next(source, (None, None))
                    if index is None:
                        break
                    waiting.append((index, pool.submit(one, item, stop)))
                if not waiting:
                    return
                index, future = waiting.popleft()
                try:
                    result = future.result()
                except Exception as error:
                    result = ProblemError(index, error)
                    if errors == "raise":
                        raise result from error
                yield result
        finally:
            stop.set()
            for _, future in waiting:
                future.cancel()
            pool.shutdown(wait=True)

    return results()


@with_options_of(solve)
def solve_many(problems, *, threads=0, errors="raise", device=None, **options):
    """Solve many problems over all cores: the list of what ``solve_each`` gives.

    >>> import numpy as np
    >>> problems = [{"unary": np.random.default_rng(i).random((2, 5, 6))} for i in range(4)]
    >>> [result.labels.shape for result in solve_many(problems, method="mf")]
    [(5, 6), (5, 6), (5, 6), (5, 6)]
    """
    return list(solve_each(problems, threads=threads, errors=errors, device=device, **options))


def cores():
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
