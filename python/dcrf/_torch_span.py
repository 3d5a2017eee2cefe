"""The distributions of all updates as sums of two of them, so that derivatives by sigmas take the filters of two updates: what
src/energy/sigma_span.c does, where it is explained, for a batch on a GPU."""

import torch

_SAMPLED = 4096
_EQUAL = 1e-10


class Span:
    """Of the q of ``count`` updates. They are given in order on the way forth; what belongs to them is added up on the way back."""

    def __init__(self, count):
        self.count = count
        self._basis = [count - 1, count // 3][: min(count, 2)]
        self._samples, self._found = [], {}
        self._coefficients = self._update = self._sums = None

    def is_in_basis(self, update):
        return update in self._basis

    def give(self, update, q):
        rows = q.reshape(len(q), -1, q.shape[-1])
        step = (rows.shape[1] + _SAMPLED - 1) // _SAMPLED
        self._samples.append(rows[:, ::step].flatten(1).double())
        if update in self._basis:
            self._found[update] = q

    def begin(self):
        """Coefficients by least squares, those of each picture for themselves; sums of nothing."""
        self._update, self._sums = self.count, {}
        samples = torch.stack(self._samples)
        first, last = samples[self._basis[0]], samples[self._basis[-1]]
        along, beside = (samples * first).sum(-1), (samples * last).sum(-1)
        size, both, other = along[self._basis[0]], along[self._basis[-1]], beside[self._basis[-1]]
        zero = torch.zeros_like(size)
        inverse = torch.where(size > 0, 1 / size, zero)
        rest = other - both * both * inverse
        second = torch.where(rest > _EQUAL * other, (beside - along * inverse * both) / rest, 0 * along)
        self._coefficients = [(along - second * both) * inverse, second][: len(self._basis)]

    def next(self):
        """Now comes what belongs to the update before."""
        self._update -= 1

    def add(self, name, rows):
        place = (-1,) + (1,) * (rows.ndim - 1)
        factors = [one[self._update].float().reshape(place) for one in self._coefficients]
        if name not in self._sums:
            self._sums[name] = [factor * rows for factor in factors]
        else:
            for total, factor in zip(self._sums[name], factors):
                total.addcmul_(rows, factor)

    def distributions(self):
        return [self._found[update] for update in self._basis]

    def in_order(self, found):
        """Of a dictionary by updates; None: there is nothing."""
        return [found.get(update) for update in self._basis]

    def sums(self, name):
        return self._sums[name]
