"""The distributions of all updates as sums of a few of them, so that derivatives by sigmas take the filters of those only: what
src/energy/sigma_span.c does, where it is explained, for a batch on a GPU."""

import torch

_STRIDE = 3
_SAMPLED = 4096
_EQUAL = 1e-10


class Span:
    """Of the q of ``count`` updates. They are given in order on the way forth; what belongs to them is added up on the way back."""

    def __init__(self, count):
        self.count = count
        self._basis = list(range(count - 1, -1, -_STRIDE))
        if len(self._basis) < min(count, 2):
            self._basis.append(count // _STRIDE)
        # Of each update: which of the basis it is made of, that one and the next.
        most = max(0, len(self._basis) - 2)
        self._firsts = [min(most, sum(place > update for place in self._basis[1:])) for update in range(count)]
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
        first = torch.stack([self._samples[self._basis[place]] for place in self._firsts])
        second = torch.stack([self._samples[self._basis[place + 1 if len(self._basis) > 1 else 0]] for place in self._firsts])
        along, size, both, other = ((one * two).sum(-1) for one, two in (
            (samples, first), (first, first), (first, second), (second, second)
        ))
        inverse = torch.where(size > 0, 1 / size, 0 * size)
        rest = other - both * both * inverse
        beside = ((samples * second).sum(-1) - along * inverse * both) / rest
        beside = torch.where(rest > _EQUAL * other, beside, 0 * along)
        self._coefficients = (along - beside * both) * inverse, beside

    def next(self):
        """Now comes what belongs to the update before."""
        self._update -= 1

    def add(self, name, rows):
        first = self._firsts[self._update]
        totals = self._sums.setdefault(name, [None] * len(self._basis))
        for place, one in zip(range(first, len(self._basis)), self._coefficients):
            factor = one[self._update].float().reshape((-1,) + (1,) * (rows.ndim - 1))
            totals[place] = factor * rows if totals[place] is None else totals[place].addcmul_(rows, factor)

    def distributions(self):
        return [self._found[update] for update in self._basis]

    def in_order(self, found):
        """Of a dictionary by updates; None: there is nothing."""
        return [found.get(update) for update in self._basis]

    def sums(self, name):
        return self._sums[name]
