"""Kill and corrupt: rounds of dcrf batch that are killed at a random moment, then a random bit flip, truncation
or deletion in the folder of results. The next run must end with the summary of an undisturbed one, or refuse with a
message and a status other than 0.

    torture.py PATH/TO/dcrf ROUNDS [SEED]
"""

import collections
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import datasets

SUMMARY = ["summary.csv", "summary.json", "summary.md"]


def files_below(folder):
    return sorted(os.path.join(path, f) for path, _, files in os.walk(folder) for f in files if f != ".lock")


def damage(chance, out):
    path = chance.choice(files_below(out))
    with open(path, "rb") as stream:
        data = bytearray(stream.read())
    kind = chance.choice(["flip", "truncate", "delete"])
    if kind == "delete":
        os.remove(path)
        return kind
    if kind == "flip" and data:
        bit = chance.randrange(8 * len(data))
        data[bit // 8] ^= 1 << bit % 8
    elif kind == "truncate" and data:
        del data[chance.randrange(len(data)):]
    with open(path, "wb") as stream:
        stream.write(data)
    return kind


def summary_of(out):
    found = []
    for name in SUMMARY:
        with open(os.path.join(out, name), "rb") as stream:
            found.append(stream.read())
    return found


def forget_some(chance, out):
    """Remove results, so that there is work to kill."""
    results = [f for f in files_below(os.path.join(out, "results")) if f.endswith(".json")]
    for path in chance.sample(results, len(results) // 2):
        os.remove(path)


def run(dcrf, folder, rounds, seed):
    """Counts of how the rounds went; raises AssertionError where one went wrong."""
    chance = random.Random(seed)
    data, out, count = os.path.join(folder, "data"), os.path.join(folder, "out"), collections.Counter()
    os.makedirs(folder, exist_ok=True)
    datasets.make(data, count=4, seed=seed)
    command = [dcrf, "batch", data, "--methods", "mf5,qp,lp", "--curves", "1", "--pictures", "1", "-q", "--out"]
    began = time.monotonic()
    subprocess.run([*command, os.path.join(folder, "whole")], check=True)
    usual_s = time.monotonic() - began
    wanted = summary_of(os.path.join(folder, "whole"))
    for number in range(rounds):
        if os.path.isdir(os.path.join(out, "results")):
            forget_some(chance, out)
        with subprocess.Popen([*command, out], stderr=subprocess.DEVNULL) as killed:
            time.sleep(chance.uniform(0, usual_s / 2))  # half of the results are there
            killed.kill()
            count["killed"] += killed.wait() == -signal.SIGKILL
        if files_below(out):
            count[damage(chance, out)] += 1
        done = subprocess.run([*command, out], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            assert done.returncode in (1, 2, 3) and done.stderr.startswith("dcrf: "), (number, done)
            count["refused"] += 1
            shutil.rmtree(out)
        else:
            assert summary_of(out) == wanted, "round %d, seed %d: another summary" % (number, seed)
            count["same summary"] += 1
    return count


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        print(dict(run(os.path.abspath(sys.argv[1]), scratch, int(sys.argv[2]),
                       int(sys.argv[3]) if len(sys.argv) > 3 else 1)))
