"""The extension module by itself, without numpy: arrays through the buffer protocol. For Pythons that have no numpy.

    core_only.py FOLDER_OF_THE_MODULE
"""

import array
import gc
import importlib.machinery
import importlib.util
import os
import sys
import threading

HEIGHT, WIDTH, LABELS = 6, 8, 2
PIXELS = HEIGHT * WIDTH


def load(folder):
    """The module alone; the package around it needs numpy."""
    files = [file for file in os.listdir(folder) if file.startswith("_core.") and file.endswith(".so")]
    assert len(files) == 1, files
    loader = importlib.machinery.ExtensionFileLoader("_core", os.path.join(folder, files[0]))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("_core", loader))
    loader.exec_module(module)
    return module


def shaped(code, values, shape):
    return memoryview(array.array(code, values)).cast("B").cast(code, shape)


def expect(kind, words, call, *arguments):
    try:
        call(*arguments)
    except kind as error:
        assert words in str(error), error
    else:
        raise AssertionError("%s was not raised" % kind.__name__)


def make_model(core):
    model = core.Model((HEIGHT, WIDTH), (1.0, 1.0), LABELS, 0, 2)
    energies = [float((x >= WIDTH // 2) != label) for y in range(HEIGHT) for x in range(WIDTH) for label in range(LABELS)]
    model.set_unary(shaped("f", energies, (HEIGHT, WIDTH, LABELS)))
    image = [200 * (x >= WIDTH // 2) for y in range(HEIGHT) for x in range(WIDTH) for _ in range(3)]
    model.add_kernel((3.0, 3.0), None, None, 0.3, True)
    model.add_kernel((9.0, 9.0), shaped("B", image, (HEIGHT, WIDTH, 3)), (20.0, 20.0, 20.0), 0.3, True)
    return model


def use_model(core):
    wanted = [int(x >= WIDTH // 2) for y in range(HEIGHT) for x in range(WIDTH)]
    model = make_model(core)
    for method in ("mf", "qp", "lp"):
        labels, moments = array.array("H", [9] * PIXELS), []
        possible = bytearray(PIXELS * LABELS) if method == "lp" else None
        found = model.solve(method, {"trace": True}, labels, None, None, moments.append, possible, method == "lp")
        assert list(labels) == wanted, method
        assert moments and found["changes"]["pixels_changed"] == 0
        # The proof adds up by other code, from floats: 1e-6 is ten of their roundings.
        assert abs(model.energy(labels)["total"] - found["energies"]["total"]) < 1e-6 * max(1, found["energies"]["total"])
    verified = model.verify(found["certificate"], labels, bytearray(PIXELS * LABELS))
    assert verified["right"] > 0 and verified["wrong"] == 0
    assert model.certify(labels, -1.0, -1.0, -1, None)["lower_bound"] <= found["energies"]["total"]

    def interrupt(moment):
        raise KeyError("on purpose")

    expect(KeyError, "on purpose", model.solve, "mf", {}, labels, None, None, interrupt)
    expect(ValueError, "it must be 'mf', 'qp' or 'lp'", model.solve, "x", {}, labels, None, None, None)
    expect((TypeError, ValueError), "", model.solve, "mf", {}, array.array("H", [0]), None, None, None)
    threads = [threading.Thread(target=make_model(core).solve, args=("lp", {}, array.array("H", [0] * PIXELS), None, None,
                                                                    None)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def use_the_rest(core):
    image = shaped("B", [200 * (x >= WIDTH // 2) for y in range(HEIGHT) for x in range(WIDTH)], (HEIGHT, WIDTH, 1))
    regions = array.array("i", [0] * PIXELS)
    count = core.superpixels((HEIGHT, WIDTH), (1.0, 1.0), image, "slic", 4.0, -1.0, -1.0, -1.0, -1, 1, regions)
    assert count == max(regions) + 1 >= 2
    operator = core.Operator((HEIGHT, WIDTH), (1.0, 1.0), (2.0, 2.0), None, None, True, 0, 1)
    ones, sums = array.array("f", [1.0] * PIXELS), array.array("f", [0.0] * PIXELS)
    operator.row_sums(sums)
    assert all(0 < value < 2 for value in sums), list(sums)
    crf = core.DenseCRF((HEIGHT, WIDTH), LABELS, 1)
    crf.set_unary(shaped("f", [float(i % 3) for i in range(PIXELS * LABELS)], (HEIGHT, WIDTH, LABELS)))
    crf.add_kernel((3.0, 3.0), None, None, array.array("f", [3.0] * LABELS), 0)
    q = array.array("f", [0.0] * (LABELS * PIXELS))
    crf.infer(3, q, None)
    assert abs(sum(q) - PIXELS) < 1e-2, sum(q)
    assert core.defaults() and core.version() and core.cpu()
    del ones


def main():
    core = load(sys.argv[1])
    use_model(core)
    use_the_rest(core)
    # Nothing is left behind: after the first rounds the number of objects stays.
    counts = []
    for _ in range(6):
        use_model(core)
        gc.collect()
        counts.append(len(gc.get_objects()))
    assert max(counts[2:]) - min(counts[2:]) < 20, counts
    print("ok", sys.version.split()[0])


if __name__ == "__main__":
    main()
