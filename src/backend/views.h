/* The caller's arrays, as the backend of a workspace sees them. On the CPU every array can be read
 * in place; a device reads its own in place, and copies those in host memory as one piece. */
#ifndef DCRF_BACKEND_VIEWS_H
#define DCRF_BACKEND_VIEWS_H

#include "core/workspace.h"

#include <dcrf/grid.h>

/* Can the backend read and write this array? `what` names it. */
dcrf_status dcrf_views_check(const dcrf_workspace *workspace, const dcrf_view *view,
                             const dcrf_grid *grid, const char *what, dcrf_error *error);

/* If the host cannot read this image, make the view one of a copy, which the caller releases. */
dcrf_status dcrf_views_fetch_image(const dcrf_workspace *workspace, const dcrf_grid *grid,
                                   dcrf_view *view, void **copy, dcrf_error *error);

/* Later work of the backend waits for everything now queued in the caller's stream; NULL: it need
 * not. */
dcrf_status dcrf_views_wait(const dcrf_workspace *workspace, void *stream, dcrf_error *error);

#endif
