"""dcrf under the import name of pydensecrf."""

import sys

from dcrf import __version__ as dcrf_version
from dcrf.pydensecrf import densecrf, eigen, utils

# `import pydensecrf.densecrf as dcrf` finds the modules of dcrf themselves, not copies.
sys.modules[__name__ + ".densecrf"] = densecrf
sys.modules[__name__ + ".eigen"] = eigen
sys.modules[__name__ + ".utils"] = utils
__all__ = ["dcrf_version", "densecrf", "eigen", "utils"]
