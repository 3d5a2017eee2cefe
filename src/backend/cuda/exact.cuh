/* The exact operator on the device:
 *
 *   (K v)_a = s_a sum_b exp(-|f_a - f_b|^2 / 2) s_b v_b
 *
 * over all pairs of variables except those too far apart to matter, as in filter/exact/exact.h.
 *
 *   exact.cu         the operator: construction, methods, and error bounds
 *   exact_order.cu   tiles of nearby variables, by sorting
 *   exact_near.cu    which pairs of tiles count, and a bound on what is left out
 *   exact_digits.cu  integer features as digits, for distances by tensor cores
 *   exact_product.cu products in float, by tensor cores (exact_tensor.cuh)
 *   exact_line.cu    the clipped line in float
 *   exact_double.cu  sums over the pairs in double: row sums, proofs
 *
 * A tile is EXACT_TILE consecutive variables in the order of exact_order.cu. A thread block works
 * on the rows of one tile and a part of the tiles that count for it, so every sum has one owner;
 * the parts are added afterwards, in order. */
#ifndef DCRF_BACKEND_CUDA_EXACT_CUH
#define DCRF_BACKEND_CUDA_EXACT_CUH

#include "backend/cuda/device.cuh"

#include <stdint.h>

#define EXACT_TILE 64
/* Channels per pass over the pairs, in float and in double. */
#define EXACT_CHANNELS 32
#define EXACT_CHANNELS_DOUBLE 8
/* The most groups of features that digits can represent: exact_digits.cu. */
#define EXACT_DIGIT_GROUPS 2

/* |f_a - f_b|^2 / 2 in units of ln 2: the sum over groups of features with the same sigma of a
 * weight times the sum of squares. The features of a group are consecutive. */
struct exact_metric {
    int features, groups, largest_group;
    uint32_t ends;                   /* bit i: feature i is the last of its group */
    float weight[DCRF_MAX_FEATURES]; /* of the group that ends here */
    double weight_double[DCRF_MAX_FEATURES];
};

/* How the features of a kernel were rearranged: the operator's feature k is the caller's feature[k]
 * times unit[k], a power of two. root[k] converts it to the units of the tiles' boxes, in which the
 * kernel is 2^-distance^2. */
struct exact_arrangement {
    int feature[DCRF_MAX_FEATURES];
    double unit[DCRF_MAX_FEATURES];
    double root[DCRF_MAX_FEATURES];
};

/* Whether a pair of tiles counts. */
enum exact_state : uint8_t { EXACT_LEFT_OUT = 0, EXACT_IN_DOUBLE = 1, EXACT_IN_BOTH = 2 };

struct exact_operator {
    struct device_operator base;
    struct exact_metric metric;
    unsigned tiles;
    unsigned parts; /* that the tiles that count for a tile are divided into */
    /* All arrays are on the device. Places are numbered tile after tile; those beyond the end
     * repeat the last variable. */
    uint32_t *order;        /* place -> variable */
    double *features;       /* tiles x features x EXACT_TILE */
    float *features_single; /* the same, rounded */
    double *scale;          /* zero beyond the end */
    float *scale_single;
    double *row_sums;     /* without the scales */
    double *box;          /* low, high of feature i of a tile: box[(2 i + side) * tiles + tile] */
    uint16_t *limit;      /* of each tile: exact_near.cu */
    uint8_t *state;       /* tiles x tiles */
    uint32_t *near_begin; /* tiles + 1 entries: where the list of a tile begins in `near` */
    uint32_t *near;       /* tiles that count in float, in ascending order */
    size_t near_pairs;    /* length of `near` */
    /* Integer features as digits, and the weights of their groups; 0 groups: no digits. */
    int digit_groups;
    float digit_weight[EXACT_DIGIT_GROUPS];
    uint32_t *row_digits, *key_digits;
    double rounded_features; /* bound on |f - (float)f|, in units of sigma */
    bool has_exact_squares;  /* sums of squares of float features are exact */
    bool is_normalized;
    double least_row_sum; /* a lower bound */
    double sum_of_scales; /* an upper bound */
    /* Scratch memory for a pass over the pairs. */
    float *keys, *rows; /* channels of the keys and of the rows of the pairs */
    float *partials;
    double *line_sums; /* sums of the kernel values, as computed for the line */
    bool has_line_sums;
    unsigned *largest; /* of each channel */
    int *flag;
};

static inline size_t exact_places(const struct exact_operator *op) {
    return (size_t)op->tiles * EXACT_TILE;
}

/* op->order. */
dcrf_status exact_order(struct exact_operator *op, const struct dcrf_features *features,
                        dcrf_error *error);
/* op->features, features_single, box, and the effect of rounding them. */
dcrf_status exact_fill_features(struct exact_operator *op, const struct dcrf_features *features,
                                const struct exact_arrangement *arrangement, dcrf_error *error);

/* op->digit_groups, and the digits of a group for 16 rows or keys of a tile, in the order of a
 * warp's lanes:
 *
 *   words[2 * lane + (8 rows further)] and, for all groups,
 *   words[2 * groups * lane + 2 * group + (8 keys further)]. */
dcrf_status exact_fill_digits(struct exact_operator *op,
                              const struct exact_arrangement *arrangement, dcrf_error *error);
__host__ __device__ inline size_t exact_row_digits(int groups, size_t tile, int group,
                                                   unsigned sixteen) {
    return ((tile * groups + group) * (EXACT_TILE / 16) + sixteen) * 64;
}
__host__ __device__ inline size_t exact_key_digits(int groups, size_t tile, unsigned sixteen) {
    return (tile * (EXACT_TILE / 16) + sixteen) * 64 * groups;
}

/* op->limit and op->state from the boxes: which pairs count in double. Then which pairs count in
 * float, from the row sums and what two tiles contribute to each other (`steps`, tiles x tiles). */
dcrf_status exact_find_near(struct exact_operator *op, dcrf_error *error);
dcrf_status exact_refine(struct exact_operator *op, const uint8_t *steps, dcrf_error *error);
/* mass[place] >= the sum of K_ab over the pairs left out even in double; on the device. */
dcrf_status exact_box_mass(const struct exact_operator *op, double *mass, dcrf_error *error);

/* The step of an upper bound on what a tile contributes to a row: exact_near.cu. */
#define EXACT_STEPS 255
#define EXACT_STEPS_PER_BIT 4
__device__ inline uint8_t exact_step(double mass) {
    if (!(mass > 0))
        return EXACT_STEPS;
    /* Slightly less, for the rounding error of the logarithm. */
    const double step = floor(-EXACT_STEPS_PER_BIT * log2(mass / EXACT_TILE) - 1e-9);
    return (uint8_t)(step < 0 ? 0 : step < EXACT_STEPS ? step : EXACT_STEPS);
}

/* op->row_sums, and the steps of all pairs that count in double. */
dcrf_status exact_measure(struct exact_operator *op, uint8_t *steps, dcrf_error *error);
/* Device arrays, rows of `channels` numbers. in = NULL: all ones; bit s of `states`: include pairs
 * in state s. */
dcrf_status exact_apply_double(const struct exact_operator *op, const double *in, double *out,
                               size_t channels, unsigned states, dcrf_error *error);
dcrf_status exact_line_double(const struct exact_operator *op, double epsilon, const float *y,
                              size_t stride, double *out, size_t channels, dcrf_error *error);

/* In float, on device arrays. These only enqueue work. */
dcrf_status exact_apply(struct exact_operator *op, const struct dcrf_application *application,
                        dcrf_error *error);
dcrf_status exact_line(struct exact_operator *op, const struct dcrf_line *line, dcrf_error *error);
/* op->line_sums. */
dcrf_status exact_fill_line_sums(struct exact_operator *op, dcrf_error *error);

/* Rounding errors in units of 2^-24: what the sums of products and of lines add to those of the
 * kernel values; and the total for products, including the rounding of the result: |error of
 * exact_apply| <= exact_apply_roundings * 2^-24 * row sum * largest |in| of a channel. */
double exact_product_roundings(const struct exact_operator *op);
double exact_line_roundings(void);
size_t exact_apply_roundings(const struct exact_operator *op);

/* What y is multiplied by for the clipped line. The sign is its limit as epsilon goes to 0:
 * differences of floats times 2^126 exceed 1, except for some below 1e-38. */
static inline double exact_line_factor(double epsilon) {
    return epsilon > 0 ? 1 / epsilon : 0x1p126;
}

#endif
