"""Runs of the LP on the photographs and evaluation sets, for the scripts that measure its gaps."""
import json
import os
import pathlib
import signal
import subprocess
import time

from measured import processor_s

ROOT = pathlib.Path(__file__).resolve().parent.parent
DCRF = ROOT / "build" / "dcrf"


def pictures(data, count):
    """Name, image, unaries and the options that say what they are."""
    for photo in ("photo1", "photo2"):
        folder = data / "msrc-example"
        yield photo, folder / f"{photo}.png", folder / f"{photo}_energy.npy", []
    for name in ("eval-set", "eval-set-corel"):
        folder = data / name
        scale = json.loads((folder / "dataset.json").read_text())["unary"]["energy_per_unit"]
        for image in (folder / "splits" / "test.txt").read_text().split()[:count]:
            yield image, folder / "images" / f"{image}.png", folder / "unaries" / f"{image}.npy", [
                "--unary-kind", "energies", "--unary-scale", str(scale)]


def heed_signals():
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # background jobs have it ignored


def solve(command, seconds, image, unary, *options):
    """What a command says of a run, as JSON, and its CPU seconds. After so many it is interrupted as by Ctrl-C."""
    words = [command, "solve", image, "--unary", unary, "--quiet", "--json", "-", "--threads", "1", *options]
    with subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, text=True,
                          preexec_fn=heed_signals) as process:
        is_interrupted = False
        while os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            if not is_interrupted and processor_s(process) > seconds:
                process.send_signal(signal.SIGINT)
                is_interrupted = True
            time.sleep(0.05)
        used = processor_s(process)
        return json.loads(process.stdout.read()), used
