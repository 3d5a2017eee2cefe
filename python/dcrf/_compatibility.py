"""What pairs of unlike labels cost, beyond numbers in an array."""

import math

import numpy as np

from ._arrays import array


class Tree:
    """Distances in a tree: different labels cost the length of the path between them.

    ``edges`` are (node, node, length). Whole numbers are labels; any other node, such as a word, is a group.

    >>> tree = Tree([(0, "animals", 1), (1, "animals", 1), ("animals", "all", 2), (2, "all", 3)])
    >>> unary = np.random.default_rng(1).random((3, 8, 9))
    >>> from dcrf import Model
    >>> model = Model(unary=unary, spatial=(1, 1), compatibility=tree)
    >>> labels = model.solve("mf").labels
    """

    def __init__(self, edges):
        self.edges = [tuple(edge) for edge in edges]
        for edge in self.edges:
            if len(edge) != 3:
                raise ValueError(f"{edge!r} is no edge: it takes two nodes and a length")

    @classmethod
    def from_groups(cls, group):
        """Groups of labels with a cost each: labels cost what the smallest group costs that holds both.

        A group is (cost, members), a member a label or a group, which costs no more than the one around it.

        >>> pets, vehicles = (1, [0, 1]), (2, [3, 4])
        >>> tree = Tree.from_groups((5, [pets, 2, vehicles]))
        """
        edges = []
        _add_group(group, edges)
        return cls(edges)

    def __repr__(self):
        return f"Tree({self.edges!r})"

    def _prepared(self, labels):
        ends, groups = [], {}
        for node in (node for edge in self.edges for node in edge[:2]):
            if not isinstance(node, (int, np.integer)):
                ends.append(groups.setdefault(node, labels + len(groups)))
            elif 0 <= node < labels:
                ends.append(int(node))
            else:
                raise ValueError(f"the tree has the label {node}; the labels are 0 to {labels - 1}")
        missing = set(range(labels)).difference(ends) if labels > 1 else ()
        if missing:
            raise ValueError(f"label {min(missing)} is missing in the tree")
        lengths = np.array([edge[2] for edge in self.edges], np.float64)
        return "tree", np.array(ends, np.intp), lengths


def _add_group(group, edges):
    """Add the edges of a group at the height cost / 2; returns its node and its cost."""
    try:
        cost, members = group
        cost, members = float(cost), list(members)
    except (TypeError, ValueError):
        raise ValueError(f"{group!r} is no group: that takes a cost and a list of members") from None
    if not (0 <= cost < math.inf) or not members:
        raise ValueError(f"{group!r} is no group: it takes a finite cost from 0 on, and members")
    inner = [(m, 0.0) if isinstance(m, (int, np.integer)) else _add_group(m, edges) for m in members]
    name = f"group {1 + len({edge[1] for edge in edges})}"
    joined = {edge[0] for edge in edges}
    for node, own in inner:
        if node in joined:
            raise ValueError(f"label {node} occurs twice in the groups")
        if own > cost:
            raise ValueError(f"a group that costs {own:g} is in one that costs {cost:g}: inner groups cost no more")
        joined.add(node)
        edges.append((node, name, (cost - own) / 2))
    return name, cost


class Cuts:
    """A sum of cuts: a pair costs ``lengths[c]`` if ``sets[c]`` holds exactly one of its two labels.

    ``sets`` has one row per cut, with one boolean per label.
    """

    def __init__(self, sets, lengths):
        self.sets = np.array(sets)
        self.lengths = np.array(lengths, np.float64)
        if self.sets.ndim != 2 or self.lengths.shape != self.sets.shape[:1]:
            raise ValueError(f"sets {self.sets.shape} and lengths {self.lengths.shape} do not fit together")
        if not np.isin(self.sets, (0, 1)).all():
            raise ValueError("sets are of 0 and 1")

    def __repr__(self):
        return f"<dcrf.Cuts: {len(self.lengths)} cuts of {self.sets.shape[1]} labels>"

    def _prepared(self, labels):
        if self.sets.shape[1] != labels:
            raise ValueError(f"the cuts are of {self.sets.shape[1]} labels; there are {labels}")
        return "cuts", np.ascontiguousarray(self.sets, np.uint8), self.lengths


def prepare(compatibility, labels):
    """What the library takes."""
    if compatibility is None or isinstance(compatibility, (str, tuple)):
        return compatibility
    if isinstance(compatibility, (Tree, Cuts)):
        return compatibility._prepared(labels)
    numbers = np.ascontiguousarray(array(compatibility, "the compatibility"), dtype=np.float32)
    if numbers.ndim not in (1, 2):
        raise ValueError("a compatibility is None, a name, a Tree, Cuts, a vector or a matrix")
    return numbers
