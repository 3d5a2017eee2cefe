"""Names of what the library numbers."""

OPERATORS = {"fast": 0, "exact": 1, "grid": 2, "lattice": 3}
NORMALIZATIONS = {"none": False, "symmetric": True}


def choice(value, choices, what):
    if value not in choices:
        names = ", ".join(repr(name) for name in choices)
        raise ValueError(f"{what} is {value!r}; it must be one of {names}")
    return choices[value]
