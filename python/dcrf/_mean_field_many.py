"""Mean field of many images: several in flight, and small ones together."""

import contextlib
import itertools
import math

import numpy as np

from ._arrays import thread_count
from ._calls import Calls, Stack
from ._device import device_name, devices_in_turn
from ._gpu import is_on_gpu
from ._many import ProblemError, cores, work_on_each
from ._mean_field import IMAGE, KINDS, MeanFieldResult, is_bool, mean_field, take, take_room
from ._options import check_options, with_options_of
from ._unary import one_source

# Numbers of the unaries of problems that are given to the library at once, and problems: it makes batches of them
# (dcrf_arrays_batch), which have no more.
_MOST_NUMBERS = 1 << 24
_MOST_PROBLEMS = 4096


@with_options_of(mean_field)
def mean_field_many(problems, *, threads=0, errors="raise", device=None, **options):
    """``mean_field`` of many problems with several of them in flight: a list of ``MeanFieldResult``. A problem is a
    dictionary of options of ``mean_field`` (with ``image``, if there is one); ``options`` are common to all.
    ``errors`` is that of ``solve_each``, ``threads`` how many work. With ``device="cuda"`` and several GPUs problems whose arrays are on the host are spread
    over them.

    On a GPU consecutive problems of one shape with equal options are processed together, with the same results as
    one by one, because launches dominate the time of small images. Their results share memory, which is freed with
    the last of them.

    >>> import numpy as np
    >>> problems = [{"logits": np.random.default_rng(i).random((2, 5, 6))} for i in range(4)]
    >>> [found.labels.shape for found in mean_field_many(problems, spatial=(2, 1.0))]
    [(5, 6), (5, 6), (5, 6), (5, 6)]
    """

    check_options(mean_field_many, options)

    def some(chunk, stop):
        return _together(chunk, options)

    results = []
    spread = itertools.cycle(devices_in_turn(device))
    with contextlib.closing(work_on_each(_chunks(problems, spread, options, threads), some, threads, errors)) as chunks:
        for found in itertools.chain.from_iterable(chunks):
            if isinstance(found, Exception):
                found = ProblemError(len(results), found)
                if errors == "raise":
                    raise found
            results.append(found)
    return results


@with_options_of(mean_field)
def mean_field_batch(images=None, *, unary=None, probabilities=None, logits=None, marginals=True, labels=True, **options):
    """``mean_field`` of a batch: arrays, and results, have one more axis for the images, the first: (images,
    labels, ...). ``options`` are those of ``mean_field``. On a GPU the images share launches, with the same
    results as one by one.

    >>> import numpy as np
    >>> found = mean_field_batch(logits=np.random.default_rng(1).random((4, 2, 5, 6)), spatial=(2, 1.0))
    >>> found.marginals.shape, found.labels.shape
    ((4, 2, 5, 6), (4, 5, 6))
    """
    check_options(mean_field_batch, options)
    kind, numbers = one_source({"unary": unary, "probabilities": probabilities, "logits": logits})
    arrays = {kind: _whole(numbers, kind)}
    if images is not None:
        arrays["image"] = _whole(images, IMAGE)
    wanted = {"marginals": marginals, "labels": labels}
    arrays.update((name, _whole_room(room, name)) for name, room in wanted.items() if not is_bool(room))
    counts = {array.shape[0] if array.ndim else 0 for array in arrays.values()}
    if len(counts) != 1 or 0 in counts:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
        raise ValueError(f"the first axis is that of the images, and it must be the same in all arrays: {shapes}")
    calls = Stack(counts.pop())

    def one(index):
        parts = {name: calls.part(array, index) for name, array in arrays.items()}
        return mean_field(_calls=calls, **{**wanted, **options, **parts})

    first = one(0)
    for name in wanted:
        if name not in arrays and getattr(first, name) is not None:
            arrays[name] = calls.whole(getattr(first, name))
    if calls.was_measured or any(isinstance(array, np.ndarray) for array in arrays.values()):
        for index in range(1, calls.count):
            one(index)
    else:
        names = (kind, "image", "marginals", "labels")
        calls.repeat([arrays[name].strides[0] if name in arrays else 0 for name in names])
    calls.run()
    return MeanFieldResult(**{name: arrays.get(name) if is_bool(room) else room for name, room in wanted.items()})


def _whole(values, name):
    """An array with the axis of the images: of numpy, or where it is on a GPU a ``DeviceArray``."""
    taken = take(values, name)
    return taken.values if taken.there is None else taken.there


def _whole_room(values, name):
    room = take_room(values, name)
    return room.values if room.there is None else room.there


def _together(chunk, options):
    """The results of problems, or what went wrong with them."""
    calls, found, called = Calls(len(chunk)), [], []
    for problem, where in chunk:
        try:
            problem = {"threads": 1, **options, "device": where, **problem}
            found.append(mean_field(problem.pop("image", None), _calls=calls, **problem))
            called.append(len(found) - 1)
        except Exception as error:
            found.append(error)
    try:
        calls.run()
    except Exception:
        for index, problem_error in zip(called, calls.run_each()):
            found[index] = problem_error or found[index]
    return found


def _chunks(problems, spread, options, threads):
    """Problems with their devices, in lists of those that look alike; on the CPU each by itself."""
    most = _MOST_PROBLEMS
    if hasattr(problems, "__len__"):  # every thread has something to do, twice
        most = max(1, min(most, len(problems) // (2 * (thread_count(threads) or cores()))))
    where, chunk, before = next(spread), [], None
    for problem in problems:
        look = _look(problem, options, where)
        if chunk and (look is None or look != before or len(chunk) == most or _size(look, len(chunk) + 1) > _MOST_NUMBERS):
            yield chunk
            where, chunk = next(spread), []
        chunk.append((problem, where))
        before = look
    if chunk:
        yield chunk


def _look(problem, options, where):
    """What tells problems apart at a glance: the shape of the unaries and where they are; None: it is by itself."""
    if not isinstance(problem, dict):
        return None
    values = next((given[kind] for given in (problem, options) for kind in KINDS if given.get(kind) is not None), None)
    shape, is_there = getattr(values, "shape", None), is_on_gpu(values)
    if shape is None or not is_there and device_name(problem.get("device", where)) == "cpu":
        return None
    return tuple(shape), is_there


def _size(look, count):
    return count * math.prod(look[0])
