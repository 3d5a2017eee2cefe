"""What pairs of unlike labels cost, beyond numbers in an array."""

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
        lengths = np.array([edge[2] for edge in self.edges], np.float64)
        return "tree", np.array(ends, np.intp), lengths


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
