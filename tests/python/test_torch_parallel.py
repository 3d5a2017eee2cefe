"""DistributedDataParallel: two processes, each with half of a batch, on the CPU with gloo. Without torch the test exits with 77, which
counts as skipped."""

import os
import subprocess
import sys
import tempfile
import unittest

try:
    import torch
except ImportError:
    print("skipped: there is no torch (on Debian: apt-get install python3-torch)")
    sys.exit(77)

from dcrf.torch import CRFLoss, MeanField

SECONDS = 240  # for hangs


class Network(torch.nn.Module):
    """One convolution, mean field, and a loss of both kinds."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.unary = torch.nn.Conv2d(3, 3, 3, padding=1)
        self.layer = MeanField(
            3, spatial=(1, 0.5), bilateral=(4, 30, 1), iterations=2, learn=("weights", "compatibility"), threads=1,
            output="log_probabilities",
        )
        self.loss = CRFLoss(3, bilateral=(4, 30, 0.1), learn=("weights",), threads=1)

    def forward(self, image, truth):
        logits = self.unary(image / 255)
        fit = torch.nn.functional.nll_loss(self.layer(logits, image), truth)
        return fit + self.loss(torch.softmax(logits, 1), image)


def batch():
    torch.manual_seed(4)
    return 255 * torch.rand(4, 3, 9, 11), torch.randint(3, (4, 9, 11))


def gradients(network, image, truth):
    network(image, truth).backward()
    return {name: parameter.grad.clone() for name, parameter in network.named_parameters() if parameter.grad is not None}


def work(rank, folder):
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2)
    network = torch.nn.parallel.DistributedDataParallel(Network())
    image, truth = batch()
    torch.save(gradients(network, image[rank::2], truth[rank::2]), f"{folder}/{rank}")
    torch.distributed.destroy_process_group()


class Parallel(unittest.TestCase):
    def test_two_processes(self):
        if not torch.distributed.is_available():
            self.skipTest("this torch has no torch.distributed")
        with tempfile.TemporaryDirectory() as folder:
            commands = [[sys.executable, os.path.abspath(__file__), "work", str(rank), folder] for rank in range(2)]
            workers = [subprocess.Popen(command) for command in commands]
            try:
                self.assertEqual([worker.wait(SECONDS) for worker in workers], [0, 0])
            finally:
                for worker in workers:
                    worker.kill()
                    worker.wait()
            found = [torch.load(f"{folder}/{rank}") for rank in range(2)]
        wanted = gradients(Network(), *batch())
        for name, value in wanted.items():
            torch.testing.assert_close(found[0]["module." + name], value, rtol=1e-4, atol=1e-6)
            self.assertTrue(torch.equal(found[0]["module." + name], found[1]["module." + name]), name)
        self.assertIn("layer.log_weights", wanted)


if __name__ == "__main__":
    if len(sys.argv) > 2 and sys.argv[1] == "work":
        work(int(sys.argv[2]), sys.argv[3])
    else:
        unittest.main()
