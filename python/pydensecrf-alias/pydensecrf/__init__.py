"""dcrf under the import name of pydensecrf."""

import sys

from dcrf.pydensecrf import densecrf, utils

# `import pydensecrf.densecrf as dcrf` finds the modules of dcrf themselves, not copies.
sys.modules[__name__ + ".densecrf"] = densecrf
sys.modules[__name__ + ".utils"] = utils
__all__ = ["densecrf", "utils"]
