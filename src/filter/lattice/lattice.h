/* The permutohedral lattice: what its files share.
 *
 *   lattice_embed.c   from a feature vector to its simplex and the weights of its corners
 *   lattice_table.c   from a key to its number
 *   lattice_set.c     codes of vertices, entered by all threads together (lattice_set.h)
 *   lattice_code.c    vertices as numbers, their order and neighbours
 *   lattice_simplices.c  simplices of the variables and their vertices
 *   lattice_build.c   the plan: embed, number, make runs, connect
 *   lattice_calibrate.c  its scale
 *   lattice_bands.c   runs of variables, by which all filters splat and slice
 *   lattice_runs.c    runs of several variables that share a simplex
 *   lattice_groups.c  runs of two threads, which add to rows of their own
 *   lattice_parts.c   runs of more threads, which have rows of their own
 *   lattice_ring.c    large lattices: splat, blur and slice in one sweep
 *   lattice_blur.c    the blur, axis after axis or all in one sweep
 *   lattice.c         the operator: splat, blur, slice, in its directions
 *   lattice_ordered.c  the ordered filter, by histograms
 *   lattice_diagonal.c  its diagonal
 *   lattice_double.c  the symmetric operator in double
 *   lattice_oneway.c  the filter one way, by runs */
#ifndef DCRF_FILTER_LATTICE_LATTICE_H
#define DCRF_FILTER_LATTICE_LATTICE_H

#include "core/memory.h"
#include "dsp/dsp.h"
#include "filter/operator.h"

#include <assert.h>
#include <string.h>

#define DCRF_MAX_CORNERS (DCRF_MAX_FEATURES + 1)

/* A function that is compiled again for each of the usual numbers, given as constants; once for all
 * where code is to be small, as on a page. */
#ifdef __OPTIMIZE_SIZE__
#define DCRF_FOR_CONSTANTS static __attribute__((noinline))
#else
#define DCRF_FOR_CONSTANTS static inline __attribute__((always_inline))
#endif

/* How much better than usual a lattice is made: closed under `rings` steps along the axes from the
 * vertices that variables touch, and so fine that the blur is done `rounds` times. For measuring
 * what accuracy costs: see bench/accuracy.c. */
struct dcrf_refinement {
    size_t rings;
    size_t rounds;
    bool is_single;  /* embed in single precision; one round only */
    bool has_origin; /* the simplex of a feature vector of zeros is there too, whatever is in it */
    /* Runs of several variables and rings, for the calls of lattice_bands.c and lattice_oneway.c
     * only: &dcrf_lattice_by_runs. NULL: each variable is a run of its own. */
    const struct dcrf_lattice_runs_methods *runs;
    size_t row_floats;     /* of the rows that will be filtered, about; 0: not known */
    size_t band_variables; /* of a band of runs; 0: not known */
};

/* Ranges of vertices that follow each other, such that a step along an axis leads at most `reach`
 * layers away. */
struct dcrf_lattice_layers {
    size_t count;
    uint32_t *first; /* count + 1 */
    size_t reach[DCRF_MAX_CORNERS];
};

/* Parts of runs, task after task, of a task band after band (see lattice_parts.c). The runs of a
 * part are counted from the first of its band. */
struct dcrf_lattice_parts {
    size_t tasks;  /* 0: there are none */
    size_t *first; /* tasks x bands + 1 */
    struct dcrf_run_part *part;
};

/* Runs of variables, band after band of them (see lattice_bands.c). */
struct dcrf_lattice_runs {
    size_t count;
    uint32_t *first;    /* count + 1: the places of a run; NULL: each variable is one */
    uint32_t *vertex;   /* count x corners */
    uint32_t *variable; /* of each place, counted from the first of its band; NULL with `first` */
    float *weight;      /* variables x corners, by place: what a splat multiplies by */
    float *weight_out;  /* what a slice multiplies by; NULL: by the same */
    size_t band_count, band_variables;
    uint32_t *band; /* band_count + 1: the first run of each */
    size_t shared_count;
    uint32_t *shared; /* vertices with a second row (lattice_groups.c) */
    struct dcrf_lattice_parts parts;
};

/* Rows that vertices take turns in (see lattice_ring.c). Where there is a ring, the vertices of the
 * runs and the neighbours are rows of it, `rows` where there is none. */
struct dcrf_lattice_ring {
    size_t rows;   /* 0: no ring */
    size_t span;   /* layers from the lowest vertex of a run to its highest */
    uint32_t *run; /* layers + 1: the first run of each */
};

/* So many floats, rounded up to whole lines of the cache. */
static inline size_t dcrf_lines_of(size_t floats) {
    const size_t line = DCRF_ALIGNMENT / sizeof(float);
    return (floats + line - 1) / line * line;
}

/* Copy a row of as many numbers as a simplex has corners, with the usual counts as constants. */
static inline void dcrf_copy_corners(void *to, const void *from, size_t corners) {
    static_assert(sizeof(float) == sizeof(uint32_t), "rows of weights are as long as of vertices");
#ifndef __OPTIMIZE_SIZE__
    if (corners == 6)
        memcpy(to, from, 6 * sizeof(uint32_t));
    else if (corners == 3)
        memcpy(to, from, 3 * sizeof(uint32_t));
    else
#endif
        memcpy(to, from, corners * sizeof(uint32_t));
}

/* The plan. A missing neighbour has the number `vertices`, a row that stays zero. */
struct dcrf_lattice {
    dcrf_operator base;
    size_t dimension;
    size_t corners; /* of a simplex, and axes of the blur: dimension + 1 */
    size_t vertices;
    size_t rounds;        /* of the blur */
    bool is_large;        /* the rows of the vertices do not fit in the cache */
    uint32_t *neighbours; /* corners x vertices x 2: along each axis, one step back and one ahead */
    struct dcrf_lattice_layers layers;
    struct dcrf_lattice_runs runs;
    struct dcrf_lattice_ring ring;
};

/* What is interrupted where a call ends early. */
#define DCRF_BUILDING "building a lattice"
#define DCRF_FILTERING "filtering by a lattice"

static inline const uint32_t *dcrf_lattice_neighbours(const struct dcrf_lattice *lattice,
                                                      size_t axis) {
    return lattice->neighbours + axis * lattice->vertices * 2;
}

/* The taps of the blur along each axis: side, centre, side. Their variance is 1/2, as the embedding
 * expects; the scale is the calibration's business. */
#define DCRF_LATTICE_CENTRE 1.0f
#define DCRF_LATTICE_SIDE 0.5f

/* Row sums computed exactly for the calibration: so many, and more of them where rows are short, up
 * to so many terms in all. In ten dimensions rows differ so much that a few are no sample. */
#define DCRF_CALIBRATION_SAMPLES 128
#define DCRF_CALIBRATION_TERMS ((size_t)1 << 23)

/* ---- lattice_embed.c ------------------------------------------------------------------------ */

struct dcrf_embedding {
    size_t dimension;
    bool is_single;
    double factor[DCRF_MAX_FEATURES];
};

/* Points, plane by plane: the simplices that hold them, and the barycentric weights of the corners.
 * Corner 0 of a simplex is its origin; corner k + 1 is one step ahead of corner k along the axis
 * whose rank is dimension - k. */
struct dcrf_points {
    int32_t origin[DCRF_MAX_CORNERS][DCRF_EMBED_POINTS];
    int32_t rank[DCRF_MAX_CORNERS][DCRF_EMBED_POINTS];
    float weight[DCRF_MAX_CORNERS][DCRF_EMBED_POINTS];
};

void dcrf_embedding_init(struct dcrf_embedding *embedding, size_t dimension, size_t rounds,
                         bool is_single);

/* Limits of coordinates, and of coordinate i less coordinate i + 1. */
struct dcrf_limits {
    int64_t low[DCRF_MAX_CORNERS], high[DCRF_MAX_CORNERS];
    int64_t difference_low[DCRF_MAX_FEATURES], difference_high[DCRF_MAX_FEATURES];
};

/* Those of the origins of simplices, from the limits of the features. */
void dcrf_embedding_range(const struct dcrf_embedding *embedding, const float *least,
                          const float *largest, struct dcrf_limits *limits);

/* Embed points, given plane by plane. Returns how many fit, up to the first that does not, because
 * a coordinate does not fit in 32 bits. */
size_t dcrf_embed_points(const struct dcrf_embedding *embedding, const float *feature,
                         struct dcrf_points *points);

/* ---- lattice_table.c ------------------------------------------------------------------------ */

struct dcrf_table {
    size_t words;     /* of a key */
    size_t count;     /* keys held */
    size_t room;      /* keys there is room for */
    size_t slots;     /* a power of two */
    uint64_t *keys;   /* count x words, in the order of their arrival */
    bool is_borrowed; /* the keys are the caller's memory, and there is no more room than that */
    struct dcrf_table_slot {
        uint32_t hash;
        uint32_t number; /* 0: free; else the key's number + 1 */
    } * slot;
};

/* `keys`: memory for the keys, or NULL. */
dcrf_status dcrf_table_new(struct dcrf_table *table, size_t words, uint64_t *keys, size_t room,
                           dcrf_error *error);
void dcrf_table_clear(struct dcrf_table *table);

/* Empty, with other memory for as many keys. */
void dcrf_table_restart(struct dcrf_table *table, uint64_t *keys);

/* The numbers of `count` keys, which are entered if they are new. They may stand in the memory of
 * the table's keys, at or behind its end. */
dcrf_status dcrf_table_enter(struct dcrf_table *table, const uint64_t *keys, size_t count,
                             uint32_t *numbers, dcrf_error *error);

/* ---- lattice_code.c ------------------------------------------------------------------------- */

/* Words of a code: a field at most in each. */
#define DCRF_CODE_WORDS DCRF_MAX_FEATURES

/* How vertices become numbers: field i holds the value lowest[i] and up. That value is coordinate d
 * in field 0 unless it is by differences too, and coordinate plus[i] less coordinate minus[i],
 * divided by d + 1, in all others. */
struct dcrf_code {
    size_t dimension;
    size_t words;
    bool by_differences;
    size_t plus[DCRF_MAX_FEATURES], minus[DCRF_MAX_FEATURES];
    int64_t lowest[DCRF_MAX_FEATURES];
    size_t word[DCRF_MAX_FEATURES];
    unsigned shift[DCRF_MAX_FEATURES];
    uint64_t mask[DCRF_MAX_FEATURES];
    uint64_t most;                                    /* above every first word */
    struct dcrf_limits limits;                        /* of what there are codes for */
    uint64_t step[DCRF_MAX_CORNERS][DCRF_CODE_WORDS]; /* what one step ahead along an axis adds */
};

/* For simplices whose origins are between these limits, with so many rings around them, and all
 * neighbours. */
void dcrf_code_init(struct dcrf_code *code, size_t dimension, const struct dcrf_limits *limits,
                    size_t rings);

/* The code of a vertex, which dcrf_code_init prepared. */
void dcrf_code_pack(const struct dcrf_code *code, const int64_t *coordinate, uint64_t *words);

/* The vertices of a lattice as they were found: each is known to its simplices by a name. */
struct dcrf_vertices {
    size_t count;
    uint64_t *codes; /* count x words, all different */
    size_t names;    /* above every name */
    uint32_t *name;  /* of each; NULL: its place */
    bool is_sorted;  /* by their codes */
};
void dcrf_vertices_clear(struct dcrf_vertices *vertices);

/* Vertices in the order of their codes. */
struct dcrf_lattice_order {
    struct dcrf_code code;
    uint64_t *codes;  /* vertices x words, in that order */
    uint32_t *number; /* by name */
};

/* Takes over what `vertices` hold, whatever comes. */
dcrf_status dcrf_lattice_order_new(struct dcrf_lattice_order *order, const struct dcrf_code *code,
                                   struct dcrf_vertices *vertices, bool is_large, dcrf_pool *pool,
                                   dcrf_error *error);
void dcrf_lattice_order_clear(struct dcrf_lattice_order *order);

/* Sort numbers by some of their bits, in parallel; what is equal in those stays in its order. The
 * array may be another one afterwards. False where memory is out. */
bool dcrf_sort(uint64_t **values, size_t count, unsigned from_bit, unsigned to_bit,
               dcrf_pool *pool);

/* Bits of numbers up to that. */
unsigned dcrf_bits_of(uint64_t most);

/* The neighbours along an axis, one step back and one ahead of each vertex; `count` where there is
 * none. They come in the order of the vertices. */
void dcrf_lattice_order_connect(const struct dcrf_lattice_order *order, size_t count, size_t axis,
                                uint32_t *neighbours);

/* The layer of a vertex, a number that does not fall. */
static inline uint64_t dcrf_lattice_order_layer(const struct dcrf_lattice_order *order, size_t v) {
    return order->codes[v * order->code.words] >> order->code.shift[0];
}

/* ---- lattice_simplices.c -------------------------------------------------------------------- */

/* The simplices of the variables, chunk by chunk of them: each once in a chunk, in the order of
 * their appearance. */
struct dcrf_simplices {
    size_t chunk; /* variables of each, the last one excepted */
    size_t chunks;
    size_t *first;    /* chunks + 1: the first simplex of each */
    size_t count;     /* of all */
    uint32_t *of;     /* of each variable, counted from the first of its chunk */
    uint32_t *corner; /* count x corners: vertices */
    float *weight;    /* variables x corners */
};

/* What simplices are made of, and the vertices that they touch. */
struct dcrf_simplices_source {
    const struct dcrf_features *features;
    const struct dcrf_embedding *embedding;
    const struct dcrf_code *code;
    size_t chunk;    /* variables of a chunk */
    size_t rings;    /* around the vertices that are touched, which are there too */
    bool has_origin; /* so are the corners of the simplex of a feature vector of zeros */
};
dcrf_status dcrf_simplices_new(struct dcrf_simplices *simplices, struct dcrf_vertices *vertices,
                               const struct dcrf_simplices_source *source,
                               dcrf_workspace *workspace, dcrf_error *error);
void dcrf_simplices_clear(struct dcrf_simplices *simplices);

/* Numbers of vertices for their names. */
void dcrf_simplices_renumber(struct dcrf_simplices *simplices, size_t corners,
                             const uint32_t *number, dcrf_pool *pool);

/* ---- lattice_build.c ------------------------------------------------------------------------ */

dcrf_status dcrf_lattice_new_refined(dcrf_operator **op, const struct dcrf_features *features,
                                     struct dcrf_refinement refinement, dcrf_workspace *workspace,
                                     dcrf_error *error);

/* ---- lattice_calibrate.c -------------------------------------------------------------------- */

dcrf_status dcrf_lattice_calibrate(dcrf_operator *base, const struct dcrf_features *features,
                                   dcrf_workspace *workspace, dcrf_error *error);

/* ---- lattice_runs.c ------------------------------------------------------------------------- */

/* How longer runs are made; linked only if referenced. */
struct dcrf_lattice_runs_methods {
    /* From the simplices of the variables: a band for each chunk, or one for all in a large
     * lattice. Takes over what is weighted, or copies it. */
    dcrf_status (*make)(struct dcrf_lattice *lattice, struct dcrf_simplices *simplices,
                        dcrf_pool *pool, dcrf_error *error);
    /* When neighbours and layers are known, for a large lattice: a ring, or else bands of so many
     * variables. */
    dcrf_status (*make_ring)(struct dcrf_lattice *lattice, size_t band_variables, dcrf_pool *pool,
                             dcrf_error *error);
};
extern const struct dcrf_lattice_runs_methods dcrf_lattice_by_runs;

/* ---- lattice_bands.c ------------------------------------------------------------------------ */

/* Begin with no runs, and bands of so many variables; and divide bands with runs among threads. */
void dcrf_lattice_bands_init(struct dcrf_lattice *lattice, size_t band_variables);
dcrf_status dcrf_lattice_bands_share(struct dcrf_lattice *lattice, dcrf_pool *pool,
                                     dcrf_error *error);

/* Make each variable a run. Takes over what is in the simplices. */
dcrf_status dcrf_lattice_singles_new(struct dcrf_lattice *lattice, struct dcrf_simplices *simplices,
                                     size_t band_variables, dcrf_pool *pool, dcrf_error *error);

void dcrf_lattice_runs_clear(struct dcrf_lattice_runs *runs);
size_t dcrf_lattice_runs_bytes(const struct dcrf_lattice *lattice);

/* What splat_runs and slice_runs take, but for the rows. */
struct dcrf_runs dcrf_lattice_runs_of(const struct dcrf_lattice *lattice, size_t width);

/* Add S in to the vertices, and take factor * S' of the vertices to `out`, or add it: for the
 * variables of one band, whose rows are given, and lattices without a ring. */
void dcrf_lattice_splat_band(const struct dcrf_lattice *lattice, size_t band, const float *in,
                             size_t in_stride, size_t width, float *vertices);
void dcrf_lattice_slice_band(const struct dcrf_lattice *lattice, size_t band, const float *vertices,
                             size_t width, float factor, bool accumulate, float *out,
                             size_t out_stride);

/* ---- lattice_groups.c ----------------------------------------------------------------------- */

/* Bands come in groups, whatever the number of threads: group g from the band
 * dcrf_lattice_group_first(bands, g) to that of g + 1. Groups can be splat at the same time, each
 * in the order of its bands. */
#define DCRF_LATTICE_GROUPS 2
size_t dcrf_lattice_group_first(size_t bands, size_t group);

/* Give a second row to the vertices that both groups touch, once there are runs in bands. */
dcrf_status dcrf_lattice_share(struct dcrf_lattice *lattice, dcrf_pool *pool, dcrf_error *error);

/* Rows of a buffer for splats and slices: of all vertices, of missing neighbours, second ones. */
static inline size_t dcrf_lattice_rows(const struct dcrf_lattice *lattice) {
    return lattice->vertices + 1 + lattice->runs.shared_count;
}

/* The vertex whose row this is. */
static inline size_t dcrf_lattice_vertex(const struct dcrf_lattice *lattice, size_t row) {
    return row > lattice->vertices ? lattice->runs.shared[row - lattice->vertices - 1] : row;
}

/* Clear all rows before a splat; add second rows to the first after it; copy what becomes of those
 * to the second before a slice. */
void dcrf_lattice_clear(const struct dcrf_lattice *lattice, dcrf_pool *pool, size_t width,
                        float *rows);
void dcrf_lattice_join(const struct dcrf_lattice *lattice, dcrf_pool *pool, size_t width,
                       float *rows);
void dcrf_lattice_repeat(const struct dcrf_lattice *lattice, dcrf_pool *pool, size_t width,
                         float *rows);

/* ---- lattice_parts.c ------------------------------------------------------------------------ */

/* Divide the splat of runs in bands among the threads of a pool, if there are more than groups. */
dcrf_status dcrf_lattice_parts_new(struct dcrf_lattice *lattice, dcrf_pool *pool,
                                   dcrf_error *error);
void dcrf_lattice_parts_clear(struct dcrf_lattice_parts *parts);
size_t dcrf_lattice_parts_bytes(const struct dcrf_lattice *lattice);

/* Add S in to the vertices: all tasks, in any order or at the same time, each band by band. The
 * same bits as band by band in each group. */
size_t dcrf_lattice_splat_tasks(const struct dcrf_lattice *lattice);
void dcrf_lattice_splat_task_band(const struct dcrf_lattice *lattice, size_t task, size_t band,
                                  const float *in, size_t in_stride, size_t width, float *vertices);
void dcrf_lattice_splat_task(const struct dcrf_lattice *lattice, size_t task, const float *in,
                             size_t in_stride, size_t width, float *vertices);

/* What a task splats of a band, where each variable is a run: parts of `first` and the variables
 * that follow it. */
struct dcrf_lattice_pieces {
    const struct dcrf_run_part *part; /* NULL: all corners of each variable */
    size_t first, count;
    size_t corners;
};
struct dcrf_lattice_pieces dcrf_lattice_pieces_of(const struct dcrf_lattice *lattice, size_t task,
                                                  size_t band);
static inline struct dcrf_run_part dcrf_lattice_piece(const struct dcrf_lattice_pieces *pieces,
                                                      size_t i) {
    return pieces->part ? pieces->part[i]
                        : (struct dcrf_run_part){(uint32_t)i, 0, (uint16_t)pieces->corners};
}

/* ---- lattice_ring.c ------------------------------------------------------------------------- */

/* Make a ring, if the layers of the lattice are narrow; it has runs, all in one band. */
dcrf_status dcrf_lattice_ring_new(struct dcrf_lattice *lattice, dcrf_pool *pool, dcrf_error *error);

/* The segments in which threads sweep through a lattice: one where it has no ring. */
#define DCRF_MOST_SEGMENTS 64
struct dcrf_lattice_segments {
    size_t count;
    size_t first[DCRF_MOST_SEGMENTS + 1]; /* layers */
    size_t work;                          /* of the largest, in rows of one pass of the blur */
};
void dcrf_lattice_divide(const struct dcrf_lattice *lattice, size_t threads,
                         struct dcrf_lattice_segments *segments);

/* The filter of lattice_oneway.c for a lattice with a ring; or a segment of it, with scratch memory
 * for one thread. Segments can be filtered at the same time. */
struct dcrf_lattice_filter;
void dcrf_lattice_filter_ring(const struct dcrf_lattice_filter *filter);
void dcrf_lattice_filter_segment(const struct dcrf_lattice_filter *filter,
                                 const struct dcrf_lattice_segments *segments, size_t segment);

/* ---- lattice_blur.c ------------------------------------------------------------------------- */

/* Divide the vertices into layers; `order` as made for them. */
dcrf_status dcrf_lattice_layers_new(struct dcrf_lattice *lattice,
                                    const struct dcrf_lattice_order *order, dcrf_pool *pool,
                                    dcrf_error *error);

/* Blur `in` along the first `count` axes of an order, upwards from axis 0 or downwards from the
 * last and round again, between two buffers of which `in` may be the second. All have vertices + 1
 * rows of `width` floats, the last one zero. Returns the buffer that holds the result. */
float *dcrf_lattice_blur(const struct dcrf_lattice *lattice, dcrf_pool *pool, size_t width,
                         const float *in, bool upwards, size_t count, float *one, float *other);

/* Blur buffer[0] in one direction, along all axes as often as the lattice asks for. Returns the
 * buffer that holds the result, doubled where it is the symmetric one. */
#define DCRF_LATTICE_BUFFERS 3
float *dcrf_lattice_blur_all(const struct dcrf_lattice *lattice, dcrf_pool *pool, size_t width,
                             dcrf_direction direction, float *const *buffer);

/* ---- lattice.c ------------------------------------------------------------------------------ */

extern const struct dcrf_operator_methods dcrf_lattice_methods;
void dcrf_lattice_free(dcrf_operator *base);

/* ---- lattice_ordered.c ---------------------------------------------------------------------- */

dcrf_status dcrf_lattice_ordered(const dcrf_operator *base, dcrf_workspace *workspace,
                                 const struct dcrf_ordered *channel, dcrf_error *error);
size_t dcrf_lattice_ordered_roundings(const dcrf_operator *base, size_t bins);

/* ---- lattice_diagonal.c --------------------------------------------------------------------- */

dcrf_status dcrf_lattice_diagonal(const dcrf_operator *base, dcrf_workspace *workspace, float *out,
                                  dcrf_error *error);

/* ---- lattice_double.c ----------------------------------------------------------------------- */

dcrf_status dcrf_lattice_apply_double(const dcrf_operator *base, dcrf_workspace *workspace,
                                      const double *in, double *out, size_t channels,
                                      dcrf_error *error);

/* ---- lattice_oneway.c ----------------------------------------------------------------------- */

/* out = factor * S' B S in, or out += that, for the first `width` floats of the rows of variables.
 * `out` may be `in` where the lattice has a ring and the pool one thread. */
struct dcrf_lattice_filter {
    const struct dcrf_lattice *lattice;
    dcrf_pool *pool;
    size_t width;
    const float *in;
    size_t in_stride;
    float *out;
    size_t out_stride;
    float factor;
    bool accumulate;
    float *scratch; /* dcrf_lattice_filter_floats of them, for the threads of the pool */
};
size_t dcrf_lattice_filter_floats(const struct dcrf_lattice *lattice, size_t width, size_t threads);
void dcrf_lattice_filter(const struct dcrf_lattice_filter *filter);

/* Multiply what variables put in by `in` and what they take out by `out`: one factor per variable,
 * or NULL. */
dcrf_status dcrf_lattice_scale(struct dcrf_lattice *lattice, dcrf_pool *pool, const float *in,
                               const float *out, dcrf_error *error);

#endif
