/* dcrf: the best labelling under a dense conditional random field, and a proof of how good it is.
 *
 * This header includes the whole public interface except dcrf/experimental.h.
 *
 * SPDX-License-Identifier: MIT */
#ifndef DCRF_DCRF_H
#define DCRF_DCRF_H

#include <dcrf/certify.h>
#include <dcrf/changes.h>
#include <dcrf/compatibility.h>
#include <dcrf/cpu.h>
#include <dcrf/densecrf.h>
#include <dcrf/device.h>
#include <dcrf/energy.h>
#include <dcrf/gradient.h>
#include <dcrf/grid.h>
#include <dcrf/labelling.h>
#include <dcrf/masks.h>
#include <dcrf/mean_field.h>
#include <dcrf/model.h>
#include <dcrf/plan.h>
#include <dcrf/proof.h>
#include <dcrf/scribbles.h>
#include <dcrf/solver.h>
#include <dcrf/status.h>
#include <dcrf/strength.h>
#include <dcrf/superpixel.h>
#include <dcrf/tiles.h>
#include <dcrf/unary.h>
#include <dcrf/verify.h>
#include <dcrf/workspace.h>

#define DCRF_VERSION_MAJOR 0
#define DCRF_VERSION_MINOR 2
#define DCRF_VERSION_PATCH 0
#define DCRF_VERSION "0.2.0"

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the library in use, which may differ from this header's. */
DCRF_API const char *dcrf_version(void);

#ifdef __cplusplus
}
#endif
#endif
