/* Shared by the files of the fake device: fake_backend.c (devices and operators), fake_memory.c,
 * fake_methods.c (the CPU's methods), fake_arrays.c and fake_compat.c. */
#ifndef FAKE_BACKEND_H
#define FAKE_BACKEND_H

#include "backend/backend.h"

dcrf_status fake_fail(dcrf_error *error, dcrf_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* DCRF_OK, or an error if FAKE_FAILURE names the entry. */
dcrf_status fake_refuse(const char *entry, dcrf_error *error);

void fake_hold(dcrf_backend_device *device);
void fake_drop(dcrf_backend_device *device);

size_t fake_index(const dcrf_backend_device *device);
void fake_count(int change); /* of objects not yet freed */

/* One number of an array over a grid. */
double fake_element(const dcrf_view *view, const dcrf_grid *grid, size_t variable, size_t channel);

/* The operator of a kernel without normalization, and its matrix, which may be modified. */
dcrf_status fake_operator_new(dcrf_operator **op, double **matrix, dcrf_backend_device *device,
                              const struct dcrf_features *features, dcrf_operator_kind kind,
                              dcrf_error *error);

bool fake_is_on(const dcrf_operator *op, const dcrf_backend_device *device);
/* A row of the operator's matrix. */
const double *fake_row(const dcrf_operator *op, size_t a);

/* Bracket the work of the device: its memory can be read and written only in between. Tests call
 * them too, through dlsym. */
__attribute__((visibility("default"))) void fake_enter(void);
__attribute__((visibility("default"))) void fake_leave(void);

extern const struct dcrf_backend_iterate_methods fake_iterate;
extern const struct dcrf_backend_lp_methods fake_lp;
extern const struct dcrf_backend_flow_methods fake_flow;
extern const struct dcrf_backend_moves_methods fake_moves;
extern const struct dcrf_backend_arrays_methods fake_arrays;
extern const struct dcrf_backend_compat_methods fake_compat;

#endif
