/* The variables that the examples in the public headers take for granted (script/check-headers). */
#include <dcrf/dcrf.h>

extern dcrf_error error;
extern dcrf_workspace *workspace;
extern dcrf_model *model;
extern dcrf_plan *plan;
extern dcrf_solver *solver;
extern dcrf_scribbles *scribbles;
extern dcrf_grid grid;
extern dcrf_view image, strokes, map;
extern dcrf_mask_info found;
extern float *energies;
extern dcrf_tile_callbacks callbacks;
extern dcrf_settings tile_settings;
extern dcrf_kernel kernels[DCRF_DEFAULT_KERNELS];
extern dcrf_measured_strength measured;
extern size_t width, height, variables, label_count;
extern float *logits, *q;
extern uint16_t *labels, *counts;
