/* The permutohedral lattice: declarations shared by its files.
 *
 *   lattice_embed.c   maps a feature vector to its simplex and the corner weights
 *   lattice_table.c   hash table from keys to numbers
 *   lattice_set.c     concurrent set of vertex codes (lattice_set.h)
 *   lattice_code.c    encoding of vertices, their order and neighbours
 *   lattice_simplices.c  the simplices of the variables, and their vertices
 *   lattice_build.c   the plan: embed, number, make runs, connect
 *   lattice_calibrate.c  the scale
 *   lattice_bands.c   splatting and slicing runs of variables, band by band
 *   lattice_runs.c    runs of several variables that share a simplex
 *   lattice_sectors.c  sectors of bands, each with copies of the rows of its vertices
 *   lattice_ring.c    large lattices: splat, blur and slice in one sweep
 *   lattice_blur.c    the blur: axis by axis, or all axes in one sweep
 *   lattice.c         the operator: splat, blur, slice
 *   lattice_ordered.c  the ordered filter, using histograms
 *   lattice_diagonal.c  the diagonal
 *   lattice_double.c  the symmetric operator in double
 *   lattice_oneway.c  the one-way filter, on runs */
#ifndef DCRF_FILTER_LATTICE_LATTICE_H
#define DCRF_FILTER_LATTICE_LATTICE_H

#include "core/memory.h"
#include "dsp/dsp.h"
#include "filter/operator.h"

#include <assert.h>
#include <string.h>

#define DCRF_MAX_CORNERS (DCRF_MAX_FEATURES + 1)

/* A function that is specialized for common values of its arguments, passed as constants; compiled
 * only once when optimizing for size. */
#ifdef __OPTIMIZE_SIZE__
#define DCRF_FOR_CONSTANTS static __attribute__((noinline))
#else
#define DCRF_FOR_CONSTANTS static inline __attribute__((always_inline))
#endif

/* How a lattice is built. */
struct dcrf_lattice_options {
    bool is_single;  /* embed in single precision */
    bool has_origin; /* include the simplex of the zero feature vector even if no variable is in it
                      */
    /* &dcrf_lattice_by_runs for runs of several variables and rings, supported only by
     * lattice_bands.c and lattice_oneway.c. NULL: each variable is a run. */
    const struct dcrf_lattice_runs_methods *runs;
    size_t row_floats;     /* approximate length of the rows to be filtered; 0: unknown */
    size_t band_variables; /* per band of runs; 0: default */
};

/* Consecutive ranges of vertices, such that a step along an axis leads at most `reach` layers away.
 */
struct dcrf_lattice_layers {
    size_t count;
    uint32_t *first; /* count + 1 */
    size_t reach[DCRF_MAX_CORNERS];
};

/* Sectors of consecutive bands, and the vertices of whose rows each has copies (see
 * lattice_sectors.c). */
struct dcrf_lattice_sector {
    size_t rows;      /* copies */
    size_t first_row; /* the copies of all sectors before it */
    uint32_t *vertex; /* of each copy, ascending */
};
struct dcrf_lattice_sectors {
    size_t count;
    struct dcrf_lattice_sector *sector;
    uint32_t *vertex;           /* of the copies of all sectors */
    size_t all_rows, most_rows; /* copies of all sectors, and of the one with the most */
    bool is_joint;              /* the copies come after the rows of the vertices */
};

/* Runs of variables, ordered by band (see lattice_bands.c). */
struct dcrf_lattice_runs {
    size_t count;
    uint32_t *first;    /* count + 1: the first place of each run; NULL: each variable is a run */
    uint32_t *vertex;   /* count x corners: rows of the run's sector, or of a ring */
    uint32_t *variable; /* of each place, counted from the first of its band; NULL if `first` is */
    float *weight;      /* variables x corners, by place: for splatting */
    float *weight_out;  /* for slicing; NULL: same as `weight` */
    size_t band_count, band_variables;
    uint32_t *band;                      /* band_count + 1: the first run of each */
    struct dcrf_lattice_sectors sectors; /* none in a ring */
};

/* The most sections of a ring. */
#define DCRF_MOST_SECTIONS 64

/* A ring buffer of rows for the vertices (see lattice_ring.c). With a ring, the vertices of runs
 * and the neighbours are stored as rows of it; a missing neighbour is `rows`. */
struct dcrf_lattice_ring {
    size_t rows;   /* 0: no ring */
    size_t span;   /* layers from the lowest vertex of a run to its highest */
    uint32_t *run; /* layers + 1: the first run of each */
    /* The work of the largest section, by their number, as far as it is known (see
     * dcrf_lattice_divide). */
    size_t divisions;
    size_t work[DCRF_MOST_SECTIONS + 1];
};

/* Up to so many bytes of vertex rows are passed over once before a thread would be awake. */
#define DCRF_LATTICE_BRIEF_BYTES ((size_t)1 << 18)

/* A number of floats, rounded up to whole cache lines. */
static inline size_t dcrf_lines_of(size_t floats) {
    const size_t line = DCRF_ALIGNMENT / sizeof(float);
    return (floats + line - 1) / line * line;
}

/* Copy one number per corner of a simplex, specialized for the common dimensions. */
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

/* The plan. A missing neighbour has the index `vertices`, whose row stays zero. */
struct dcrf_lattice {
    dcrf_operator base;
    size_t dimension;
    size_t corners; /* of a simplex, and axes of the blur: dimension + 1 */
    size_t vertices;
    bool is_large;        /* the vertex rows do not fit in the cache */
    uint32_t *neighbours; /* corners x vertices x 2: along each axis, one step back and one ahead */
    struct dcrf_lattice_layers layers;
    struct dcrf_lattice_runs runs;
    struct dcrf_lattice_ring ring;
};

/* For error messages of interrupted calls. */
#define DCRF_BUILDING "building a lattice"
#define DCRF_FILTERING "filtering by a lattice"

static inline const uint32_t *dcrf_lattice_neighbours(const struct dcrf_lattice *lattice,
                                                      size_t axis) {
    return lattice->neighbours + axis * lattice->vertices * 2;
}

/* The taps of the blur along each axis: side, centre, side. Their variance is 1/2, as the embedding
 * expects; calibration takes care of the scale. */
#define DCRF_LATTICE_CENTRE 1.0f
#define DCRF_LATTICE_SIDE 0.5f

/* Number of row sums computed exactly for the calibration: at least SAMPLES, and more for small
 * models, up to TERMS terms in total. In ten dimensions row sums vary so much that a small sample
 * is not enough. */
#define DCRF_CALIBRATION_SAMPLES 128
#define DCRF_CALIBRATION_TERMS ((size_t)1 << 23)

/* ---- lattice_embed.c ------------------------------------------------------------------------ */

struct dcrf_embedding {
    size_t dimension;
    bool is_single;
    double factor[DCRF_MAX_FEATURES];
};

/* Embedded points, stored as planes: the simplices that contain them, and the barycentric weights
 * of the corners. Corner 0 of a simplex is its origin; corner k + 1 is one step ahead of corner k
 * along the axis whose rank is dimension - k. */
struct dcrf_points {
    int32_t origin[DCRF_MAX_CORNERS][DCRF_EMBED_POINTS];
    int32_t rank[DCRF_MAX_CORNERS][DCRF_EMBED_POINTS];
    float weight[DCRF_MAX_CORNERS][DCRF_EMBED_POINTS];
};

void dcrf_embedding_init(struct dcrf_embedding *embedding, size_t dimension, bool is_single);

/* Limits of coordinates, and of coordinate i minus coordinate i + 1. */
struct dcrf_limits {
    int64_t low[DCRF_MAX_CORNERS], high[DCRF_MAX_CORNERS];
    int64_t difference_low[DCRF_MAX_FEATURES], difference_high[DCRF_MAX_FEATURES];
};

/* The limits of simplex origins, from the limits of the features. */
void dcrf_embedding_range(const struct dcrf_embedding *embedding, const float *least,
                          const float *largest, struct dcrf_limits *limits);

/* Embed points, given as planes. Returns the number of points before the first with a coordinate
 * that does not fit in 32 bits. */
size_t dcrf_embed_points(const struct dcrf_embedding *embedding, const float *feature,
                         struct dcrf_points *points);

/* ---- lattice_table.c ------------------------------------------------------------------------ */

struct dcrf_table {
    size_t words;     /* of a key */
    size_t count;     /* keys held */
    size_t room;      /* capacity in keys */
    size_t slots;     /* a power of two */
    uint64_t *keys;   /* count x words, in insertion order */
    bool is_borrowed; /* the keys are in the caller's memory, which cannot grow */
    struct dcrf_table_slot {
        uint32_t hash;
        uint32_t number; /* 0: free; else the key's number + 1 */
    } * slot;
};

/* `keys`: the caller's memory for the keys, or NULL to allocate it. */
dcrf_status dcrf_table_new(struct dcrf_table *table, size_t words, uint64_t *keys, size_t room,
                           dcrf_error *error);
void dcrf_table_clear(struct dcrf_table *table);

/* Empty the table, with new memory for as many keys. */
void dcrf_table_restart(struct dcrf_table *table, uint64_t *keys);

/* Look up the numbers of `count` keys, inserting new ones. The keys may be in the table's own key
 * memory, at or beyond its end. */
dcrf_status dcrf_table_enter(struct dcrf_table *table, const uint64_t *keys, size_t count,
                             uint32_t *numbers, dcrf_error *error);

/* ---- lattice_code.c ------------------------------------------------------------------------- */

/* Maximum number of words in a code: one per field. */
#define DCRF_CODE_WORDS DCRF_MAX_FEATURES

/* How vertices are encoded: field i holds a value minus lowest[i]. The value is coordinate plus[i]
 * minus coordinate minus[i], divided by d + 1, except that field 0 holds coordinate d unless
 * by_differences. */
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
    struct dcrf_limits limits;                        /* of the vertices that can be encoded */
    uint64_t step[DCRF_MAX_CORNERS][DCRF_CODE_WORDS]; /* what one step ahead along an axis adds */
};

/* A code for simplices whose origins are within these limits, and for all neighbours. */
void dcrf_code_init(struct dcrf_code *code, size_t dimension, const struct dcrf_limits *limits);

/* Encode a vertex within the limits of the code. */
void dcrf_code_pack(const struct dcrf_code *code, const int64_t *coordinate, uint64_t *words);

/* The vertices of a lattice as they were found; simplices refer to them by name. */
struct dcrf_vertices {
    size_t count;
    uint64_t *codes; /* count x words, all different */
    size_t names;    /* above every name */
    uint32_t *name;  /* of each; NULL: its index */
    bool is_sorted;  /* by their codes */
};
void dcrf_vertices_clear(struct dcrf_vertices *vertices);

/* Vertices in the order of their codes. */
struct dcrf_lattice_order {
    struct dcrf_code code;
    uint64_t *codes;  /* vertices x words, in that order */
    uint32_t *number; /* by name */
};

/* Takes ownership of the contents of `vertices`, even on failure. */
dcrf_status dcrf_lattice_order_new(struct dcrf_lattice_order *order, const struct dcrf_code *code,
                                   struct dcrf_vertices *vertices, bool is_large, dcrf_pool *pool,
                                   dcrf_error *error);
void dcrf_lattice_order_clear(struct dcrf_lattice_order *order);

/* Stable parallel sort of numbers by some of their bits. May replace the array. Returns false if
 * out of memory. */
bool dcrf_sort(uint64_t **values, size_t count, unsigned from_bit, unsigned to_bit,
               dcrf_pool *pool);

/* Number of bits needed for values up to `most`. */
unsigned dcrf_bits_of(uint64_t most);

/* The neighbours along an axis, one step back and one ahead of each vertex; `count` if there is
 * none. They ascend with the vertices. Parts can be found concurrently. */
size_t dcrf_lattice_order_parts(const struct dcrf_lattice_order *order, size_t count);
void dcrf_lattice_order_connect(const struct dcrf_lattice_order *order, size_t count, size_t axis,
                                size_t part, uint32_t *neighbours);

/* The layer of a vertex; nondecreasing in v. */
static inline uint64_t dcrf_lattice_order_layer(const struct dcrf_lattice_order *order, size_t v) {
    return order->codes[v * order->code.words] >> order->code.shift[0];
}

/* ---- lattice_simplices.c -------------------------------------------------------------------- */

/* The simplices of the variables, by chunks of variables: each once per chunk, in order of
 * appearance. */
struct dcrf_simplices {
    size_t chunk; /* variables per chunk, except the last */
    size_t chunks;
    size_t *first;    /* chunks + 1: the first simplex of each */
    size_t count;     /* of all */
    uint32_t *of;     /* of each variable, counted from the first of its chunk */
    uint32_t *corner; /* count x corners: vertices */
    float *weight;    /* variables x corners */
};

/* Input from which simplices and the vertices that they touch are found. */
struct dcrf_simplices_source {
    const struct dcrf_features *features;
    const struct dcrf_embedding *embedding;
    const struct dcrf_code *code;
    size_t chunk;    /* variables per chunk */
    bool has_origin; /* add the corners of the simplex of the zero feature vector */
};
dcrf_status dcrf_simplices_new(struct dcrf_simplices *simplices, struct dcrf_vertices *vertices,
                               const struct dcrf_simplices_source *source,
                               dcrf_workspace *workspace, dcrf_error *error);
void dcrf_simplices_clear(struct dcrf_simplices *simplices);

/* Replace the names of vertices by their numbers. */
void dcrf_simplices_renumber(struct dcrf_simplices *simplices, size_t corners,
                             const uint32_t *number, dcrf_pool *pool);

/* ---- lattice_build.c ------------------------------------------------------------------------ */

dcrf_status dcrf_lattice_new_with(dcrf_operator **op, const struct dcrf_features *features,
                                  struct dcrf_lattice_options options, dcrf_workspace *workspace,
                                  dcrf_error *error);

/* ---- lattice_calibrate.c -------------------------------------------------------------------- */

dcrf_status dcrf_lattice_calibrate(dcrf_operator *base, const struct dcrf_features *features,
                                   dcrf_workspace *workspace, dcrf_error *error);

/* ---- lattice_runs.c ------------------------------------------------------------------------- */

/* Construction of longer runs; linked only if referenced. */
struct dcrf_lattice_runs_methods {
    /* From the simplices of the variables: one band per chunk, or a single band in a large lattice.
     * Takes the weights from the simplices or copies them. */
    dcrf_status (*make)(struct dcrf_lattice *lattice, struct dcrf_simplices *simplices,
                        dcrf_pool *pool, dcrf_error *error);
    /* For a large lattice, once neighbours and layers are known: make a ring or, if that does not
     * pay, bands of `band_variables` variables. */
    dcrf_status (*make_ring)(struct dcrf_lattice *lattice, size_t band_variables, dcrf_pool *pool,
                             dcrf_error *error);
};
extern const struct dcrf_lattice_runs_methods dcrf_lattice_by_runs;

/* ---- lattice_bands.c ------------------------------------------------------------------------ */

/* Start with no runs and bands of `band_variables` variables. */
void dcrf_lattice_bands_init(struct dcrf_lattice *lattice, size_t band_variables);

/* Make each variable a run. Takes ownership of the contents of the simplices. */
dcrf_status dcrf_lattice_singles_new(struct dcrf_lattice *lattice, struct dcrf_simplices *simplices,
                                     size_t band_variables, dcrf_pool *pool, dcrf_error *error);

void dcrf_lattice_runs_clear(struct dcrf_lattice_runs *runs);
size_t dcrf_lattice_runs_bytes(const struct dcrf_lattice *lattice);

/* The argument of splat_runs and slice_runs, without the rows. */
struct dcrf_runs dcrf_lattice_runs_of(const struct dcrf_lattice *lattice, size_t width);

/* Splat: add S in to the rows of the band's sector. Slice: write factor * S' rows to `out`, or add
 * it. For the variables of one band, whose rows are given; not for lattices with a ring. */
void dcrf_lattice_splat_band(const struct dcrf_lattice *lattice, size_t band, const float *in,
                             size_t in_stride, size_t width, float *rows);
void dcrf_lattice_slice_band(const struct dcrf_lattice *lattice, size_t band, const float *rows,
                             size_t width, float factor, bool accumulate, float *out,
                             size_t out_stride);

/* ---- lattice_sectors.c ---------------------------------------------------------------------- */

/* Bands are divided into sectors, independently of the number of threads. */
size_t dcrf_lattice_sector_count(size_t variables, size_t bands);

/* Give sectors their copies, once there are runs in bands; runs refer to them from then on. How
 * they are laid out depends on the number of threads, what is computed does not. */
dcrf_status dcrf_lattice_sectors_new(struct dcrf_lattice *lattice, dcrf_pool *pool,
                                     dcrf_error *error);
void dcrf_lattice_sectors_clear(struct dcrf_lattice_sectors *sectors);
size_t dcrf_lattice_sectors_bytes(const struct dcrf_lattice_sectors *sectors);

/* The first band of a sector, and its first variable. */
static inline size_t dcrf_lattice_sector_first(const struct dcrf_lattice *lattice, size_t sector) {
    return sector * lattice->runs.band_count / lattice->runs.sectors.count;
}
static inline size_t dcrf_lattice_sector_begin(const struct dcrf_lattice *lattice, size_t sector) {
    const size_t a = dcrf_lattice_sector_first(lattice, sector) * lattice->runs.band_variables;
    return a < lattice->base.variables ? a : lattice->base.variables;
}

/* The first row to which runs of a sector refer that is a copy. */
static inline size_t dcrf_lattice_first_copy(const struct dcrf_lattice *lattice, size_t sector) {
    const struct dcrf_lattice_sectors *sectors = &lattice->runs.sectors;
    return sectors->is_joint ? lattice->vertices + 1 + sectors->sector[sector].first_row : 0;
}

/* The vertices of the rows to which the runs of a variable's sector refer. */
struct dcrf_lattice_names {
    size_t first_copy;
    const uint32_t *vertex; /* of the copies */
};
static inline struct dcrf_lattice_names dcrf_lattice_names_at(const struct dcrf_lattice *lattice,
                                                              size_t variable) {
    const struct dcrf_lattice_runs *runs = &lattice->runs;
    if (runs->sectors.is_joint)
        return (struct dcrf_lattice_names){lattice->vertices + 1, runs->sectors.vertex};
    const size_t band = variable / runs->band_variables;
    const size_t sector = ((band + 1) * runs->sectors.count - 1) / runs->band_count;
    return (struct dcrf_lattice_names){0, runs->sectors.sector[sector].vertex};
}
static inline uint32_t dcrf_lattice_vertex(struct dcrf_lattice_names names, uint32_t row) {
    return row < names.first_copy ? row : names.vertex[row - names.first_copy];
}

/* Rows of a buffer for all vertices: one more for missing neighbours, and joint copies. */
static inline size_t dcrf_lattice_rows(const struct dcrf_lattice *lattice) {
    const struct dcrf_lattice_sectors *sectors = &lattice->runs.sectors;
    return lattice->vertices + 1 + (sectors->is_joint ? sectors->all_rows : 0);
}

/* Rows of a buffer for separate copies: of all sectors, and of any one. */
static inline size_t dcrf_lattice_copies(const struct dcrf_lattice *lattice) {
    return lattice->runs.sectors.is_joint ? 0 : lattice->runs.sectors.all_rows;
}
static inline size_t dcrf_lattice_most_copies(const struct dcrf_lattice *lattice) {
    return lattice->runs.sectors.is_joint ? 0 : lattice->runs.sectors.most_rows;
}

/* What is splat. */
struct dcrf_lattice_sums {
    const struct dcrf_lattice *lattice;
    size_t width;   /* numbers in a row */
    bool is_double; /* else floats */
    bool is_alone;  /* one thread splats all sectors, in order */
    void *vertices; /* dcrf_lattice_rows rows: the result */
    void *copies;   /* dcrf_lattice_copies rows */
};

/* Start, splat all sectors, in any order or concurrently, and join them. Start and join work on
 * several sums at a time. */
void dcrf_lattice_sums_start(const struct dcrf_lattice_sums *sums, size_t count, dcrf_pool *pool);
void dcrf_lattice_sums_join(const struct dcrf_lattice_sums *sums, size_t count, dcrf_pool *pool);

/* Before a sector is splat, and after it. The rows to which its runs refer, returned at the
 * beginning too. */
void *dcrf_lattice_sums_begin(const struct dcrf_lattice_sums *sums, size_t sector);
void dcrf_lattice_sums_end(const struct dcrf_lattice_sums *sums, size_t sector);
void *dcrf_lattice_sums_rows(const struct dcrf_lattice_sums *sums, size_t sector);

/* Fill the copies of a sector from the rows of the vertices, and return the rows to which its runs
 * refer. Separate copies are put into `taken`. */
float *dcrf_lattice_take(const struct dcrf_lattice *lattice, size_t sector, size_t width,
                         float *vertices, float *taken);

/* ---- lattice_ring.c ------------------------------------------------------------------------- */

/* Make a ring if the layers of the lattice are thin enough. The lattice must have runs, all in one
 * band. */
dcrf_status dcrf_lattice_ring_new(struct dcrf_lattice *lattice, dcrf_pool *pool, dcrf_error *error);

/* The sections of a lattice that threads sweep through: a single one without a ring. */
struct dcrf_lattice_sections {
    size_t count;
    size_t first[DCRF_MOST_SECTIONS + 1]; /* layers */
    size_t work;                          /* of the largest, in units of one row in one pass of the
                                           * blur */
};
void dcrf_lattice_divide(const struct dcrf_lattice *lattice, size_t threads,
                         struct dcrf_lattice_sections *sections);

/* The filter of lattice_oneway.c for a lattice with a ring; or for one section, with scratch memory
 * for one thread. Segments can be filtered concurrently. */
struct dcrf_lattice_filter;
void dcrf_lattice_filter_ring(const struct dcrf_lattice_filter *filter);
void dcrf_lattice_filter_section(const struct dcrf_lattice_filter *filter,
                                 const struct dcrf_lattice_sections *sections, size_t section);

/* ---- lattice_blur.c ------------------------------------------------------------------------- */

/* Divide the vertices into layers, given their order. */
dcrf_status dcrf_lattice_layers_new(struct dcrf_lattice *lattice,
                                    const struct dcrf_lattice_order *order, dcrf_pool *pool,
                                    dcrf_error *error);

/* Blur `in` in `count` passes along the axes, upwards from axis 0 or downwards from the last one,
 * wrapping around. Alternates between two buffers, of which `in` may be the second. All have
 * vertices + 1 rows of `width` floats, the last one zero. */
struct dcrf_lattice_passes {
    const struct dcrf_lattice *lattice;
    size_t width;
    bool upwards;
    size_t count;
    const float *in;
    float *one, *other;
};

/* The buffer that holds the result. */
static inline float *dcrf_lattice_blurred(const struct dcrf_lattice_passes *passes) {
    return passes->count % 2 ? passes->one : passes->other;
}

/* Several blurs, the first passes of all in the same loop, then the second, and so on; those of
 * large lattices one after the other. */
#define DCRF_LATTICE_TOGETHER 64
void dcrf_lattice_blur_together(const struct dcrf_lattice_passes *blurs, size_t count,
                                dcrf_pool *pool);

/* Does it take the same loops as others? */
bool dcrf_lattice_is_whole(const struct dcrf_lattice *lattice, size_t width, size_t threads);

/* A single one; returns its result. */
float *dcrf_lattice_blur(const struct dcrf_lattice *lattice, dcrf_pool *pool, size_t width,
                         const float *in, bool upwards, size_t count, float *one, float *other);

/* Blur buffer[0] in one direction, along all axes. Returns the buffer that holds the result, which
 * is doubled for the symmetric direction. */
#define DCRF_LATTICE_BUFFERS 3
float *dcrf_lattice_blur_all(const struct dcrf_lattice *lattice, dcrf_pool *pool, size_t width,
                             dcrf_direction direction, float *const *buffer);

/* The symmetric direction for a whole lattice, with one more buffer: both orders together. */
float *dcrf_lattice_blur_both(const struct dcrf_lattice *lattice, dcrf_pool *pool, size_t width,
                              float *const *buffer, float *fourth);

/* ---- lattice.c ------------------------------------------------------------------------------ */

extern const struct dcrf_operator_methods dcrf_lattice_methods;
void dcrf_lattice_free(dcrf_operator *base);

/* ---- lattice_ordered.c ---------------------------------------------------------------------- */

dcrf_status dcrf_lattice_ordered(const dcrf_operator *base, dcrf_workspace *workspace,
                                 const struct dcrf_ordered *channel, dcrf_error *error);
size_t dcrf_lattice_ordered_roundings(const dcrf_operator *base, size_t bins, bool is_sign);

/* ---- lattice_diagonal.c --------------------------------------------------------------------- */

dcrf_status dcrf_lattice_diagonal(const dcrf_operator *base, dcrf_workspace *workspace, float *out,
                                  dcrf_error *error);

/* ---- lattice_double.c ----------------------------------------------------------------------- */

dcrf_status dcrf_lattice_apply_double(const dcrf_operator *base, dcrf_workspace *workspace,
                                      const double *in, double *out, size_t channels,
                                      dcrf_error *error);

/* ---- lattice_oneway.c ----------------------------------------------------------------------- */

/* out = factor * S' B S in, or out += that, for the first `width` floats of the rows of variables.
 * `out` may be `in` if the lattice has a ring and the pool one thread. */
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
    float *scratch; /* dcrf_lattice_filter_floats floats */
};
size_t dcrf_lattice_filter_floats(const struct dcrf_lattice *lattice, size_t width, size_t threads);
void dcrf_lattice_filter(const struct dcrf_lattice_filter *filter);

/* The same for a lattice without a ring (lattice.c). */
void dcrf_lattice_filter_sectors(const struct dcrf_lattice_filter *filter);

/* Multiply the splat weights by `in` and the slice weights by `out`: one factor per variable, or
 * NULL. */
dcrf_status dcrf_lattice_scale(struct dcrf_lattice *lattice, dcrf_pool *pool, const float *in,
                               const float *out, dcrf_error *error);

#endif
