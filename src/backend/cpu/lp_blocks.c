#include "backend/cpu/lp_blocks.h"

#include "core/error.h"
#include "core/memory.h"

#include <math.h>
#include <string.h>

/* ---- memory --------------------------------------------------------------------------------- */

dcrf_status dcrf_lp_blocks_init(struct dcrf_lp_blocks *blocks, const struct dcrf_dual_space *space,
                                dcrf_error *error) {
    *blocks = (struct dcrf_lp_blocks){.all = space, .space = *space};
    blocks->column_of = dcrf_allocate_zero(space->labels, sizeof *blocks->column_of);
    blocks->label_of = dcrf_allocate_zero(space->labels, sizeof *blocks->label_of);
    blocks->is_wanted = dcrf_allocate_zero(space->labels, sizeof *blocks->is_wanted);
    return blocks->column_of && blocks->label_of && blocks->is_wanted
               ? DCRF_OK
               : dcrf_fail_memory(error, "the LP relaxation");
}

/* Release everything that has rows. */
static void release_rows(struct dcrf_lp_blocks *blocks) {
    dcrf_pair_filter_clear(&blocks->pairs);
    for (size_t k = 0; k < DCRF_BACKEND_DUALS; k++)
        dcrf_dual_clear(&blocks->dual[k]);
    dcrf_release(blocks->unary);
    dcrf_release(blocks->y);
    dcrf_release(blocks->previous);
    dcrf_release(blocks->z);
    dcrf_release(blocks->inner);
}

void dcrf_lp_blocks_clear(struct dcrf_lp_blocks *blocks) {
    release_rows(blocks);
    dcrf_release(blocks->column_of);
    dcrf_release(blocks->label_of);
    dcrf_release(blocks->is_wanted);
    *blocks = (struct dcrf_lp_blocks){0};
}

/* Zeros: the padding of rows is not written later. */
static float *take_block(const struct dcrf_dual_space *space) {
    float *block = dcrf_allocate(space->variables, space->stride * sizeof *block);
    if (block)
        dcrf_parallel_clear(dcrf_workspace_pool(space->workspace), block,
                            space->variables * space->stride * sizeof *block);
    return block;
}

static dcrf_status take_rows(struct dcrf_lp_blocks *blocks, dcrf_error *error) {
    const size_t n = blocks->space.variables, row = blocks->space.stride * sizeof(float);
    const bool is_shared = blocks->used < blocks->all->labels;
    blocks->y = take_block(&blocks->space);
    blocks->previous = take_block(&blocks->space);
    blocks->z = take_block(&blocks->space);
    if (is_shared)
        blocks->unary = dcrf_allocate(n, row);
    if (!blocks->y || !blocks->previous || !blocks->z || (is_shared && !blocks->unary))
        return dcrf_fail_memory(error, "the LP relaxation");
    dcrf_status status = dcrf_pair_filter_init(&blocks->pairs, &blocks->space, error);
    for (size_t k = 0; k < DCRF_BACKEND_DUALS && status == DCRF_OK; k++)
        status = dcrf_dual_init(&blocks->dual[k], &blocks->space, error);
    return status;
}

/* ---- other columns -------------------------------------------------------------------------- */

static bool is_used(const struct dcrf_lp_blocks *blocks, size_t label) {
    return blocks->y && (blocks->column_of[label] < blocks->used || !blocks->unary);
}

/* Room for at least this many columns, since the first labelling is not known when the first rows
 * are allocated. */
#define FEWEST_COLUMNS 8

static size_t stride_of(size_t columns) {
    return dcrf_padded(columns > FEWEST_COLUMNS ? columns : FEWEST_COLUMNS);
}

/* The number of labels that get their own column: all of them if sharing one would not shorten a
 * row. */
static size_t count_used(const struct dcrf_lp_blocks *blocks) {
    const size_t labels = blocks->all->labels;
    size_t count = 0;
    for (size_t i = 0; i < labels; i++)
        count += is_used(blocks, i) || blocks->is_wanted[i];
    return blocks->all->is_potts && stride_of(count + 1) < blocks->all->stride ? count : labels;
}

/* A change from old columns to new ones. */
struct change {
    const struct dcrf_lp_blocks *from, *to;
    const size_t *source; /* per new column, the old one; ascending */
};

/* Rows of one block; entries have `size` bytes. Columns only move towards the end of a row, so
 * starting with the last one allows rows to be changed in place. */
static void move_rows(const struct change *c, size_t begin, size_t end, const void *from, void *to,
                      size_t size) {
    const size_t columns = c->to->space.labels, stride = c->to->space.stride;
    const size_t old_shared = c->from->used, old_stride = c->from->space.stride;
    for (size_t a = begin; from && a < end; a++) {
        const char *old = (const char *)from + a * old_stride * size;
        char *row = (char *)to + a * stride * size, shared[sizeof(double)];
        memcpy(shared, old + old_shared * size, size);
        memset(row + columns * size, 0, (stride - columns) * size);
        for (size_t k = columns; k-- > 0;)
            memmove(row + k * size, c->source[k] == old_shared ? shared : old + c->source[k] * size,
                    size);
    }
}

static void move_all(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct change *c = context;
    const struct dcrf_lp_blocks *from = c->from, *to = c->to;
    move_rows(c, begin, end, from->y, to->y, sizeof(float));
    move_rows(c, begin, end, from->previous, to->previous, sizeof(float));
    move_rows(c, begin, end, from->z, to->z, sizeof(float));
    for (size_t k = 0; k < DCRF_BACKEND_DUALS; k++) {
        const struct dcrf_dual *old = &from->dual[k], *dual = &to->dual[k];
        move_rows(c, begin, end, old->pairwise, dual->pairwise, sizeof(double));
        move_rows(c, begin, end, old->clique, dual->clique, sizeof(double));
    }
}

static void fill_unary(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct dcrf_lp_blocks *blocks = context;
    const size_t labels = blocks->all->labels, stride = blocks->space.stride;
    const float *all = dcrf_dual_unary(blocks->all);
    for (size_t a = begin; a < end; a++) {
        const float *phi = all + a * blocks->all->stride;
        float *row = blocks->unary + a * stride, lowest = INFINITY;
        memset(row, 0, stride * sizeof *row);
        for (size_t i = 0; i < labels; i++) {
            const size_t column = blocks->column_of[i];
            if (column < blocks->used)
                row[column] = phi[i];
            else
                lowest = phi[i] < lowest ? phi[i] : lowest;
        }
        row[blocks->used] = lowest;
    }
}

/* Give columns to the wanted labels; source[] gets the old column of each new one. */
static void assign_columns(struct dcrf_lp_blocks *blocks, size_t used, size_t *source) {
    const size_t labels = blocks->all->labels, old_shared = blocks->used;
    size_t column = 0;
    for (size_t i = 0; i < labels; i++) {
        const bool was_used = is_used(blocks, i), has_own = used == labels || was_used;
        if (has_own || blocks->is_wanted[i]) {
            source[column] = was_used ? blocks->column_of[i] : old_shared;
            blocks->is_wanted[i] = true;
        }
        column += blocks->is_wanted[i];
    }
    source[column] = old_shared; /* for the labels that still share a column */
    column = 0;
    for (size_t i = 0; i < labels; i++) {
        blocks->column_of[i] = blocks->is_wanted[i] ? column++ : used;
        if (blocks->is_wanted[i])
            blocks->label_of[blocks->column_of[i]] = (uint16_t)i;
    }
    blocks->used = used;
}

/* The space with rows for `used` labels. */
static struct dcrf_dual_space make_space(const struct dcrf_lp_blocks *blocks, size_t used) {
    struct dcrf_dual_space space = *blocks->all;
    if (used < space.labels) {
        space.labels = used + 1;
        space.stride = stride_of(space.labels);
        space.unary = blocks->unary;
    }
    return space;
}

/* Rows to replace those of `old`: the same memory if the length is unchanged, otherwise new. */
static dcrf_status make_rows(const struct dcrf_lp_blocks *old, size_t used,
                             struct dcrf_lp_blocks *made, dcrf_error *error) {
    *made = *old;
    made->space = make_space(old, used);
    made->used = used;
    made->is_blank = false;
    if (old->y && made->space.stride == old->space.stride)
        return DCRF_OK;
    made->pairs = (struct dcrf_pair_filter){0};
    memset(made->dual, 0, sizeof made->dual);
    made->unary = made->y = made->previous = made->z = made->inner = NULL;
    const dcrf_status status = take_rows(made, error);
    if (status < 0)
        release_rows(made);
    return status;
}

static dcrf_status widen(struct dcrf_lp_blocks *blocks, size_t used, size_t *source,
                         dcrf_error *error) {
    struct dcrf_lp_blocks old = *blocks, made;
    const dcrf_status status = make_rows(&old, used, &made, error);
    if (status < 0)
        return status;
    assign_columns(blocks, used, source);
    struct change change = {&old, &made, source};
    if (made.y != old.y || !old.is_blank)
        dcrf_parallel_rows(dcrf_workspace_pool(old.all->workspace), old.all->variables, move_all,
                           &change);
    for (size_t k = 0; k < DCRF_BACKEND_DUALS; k++)
        made.dual[k].roundings = old.dual[k].roundings;
    if (made.y != old.y)
        release_rows(&old);
    *blocks = made;
    blocks->pairs.space = &blocks->space;
    return DCRF_OK;
}

dcrf_status dcrf_lp_blocks_widen(struct dcrf_lp_blocks *blocks, dcrf_error *error) {
    const size_t used = count_used(blocks);
    dcrf_status status = DCRF_OK;
    if (!blocks->y || used > blocks->used) {
        size_t *source = dcrf_allocate(blocks->all->labels + 1, sizeof *source);
        status = source ? widen(blocks, used, source, error)
                        : dcrf_fail_memory(error, "the LP relaxation");
        dcrf_release(source);
        if (status == DCRF_OK && blocks->unary)
            dcrf_parallel_rows(dcrf_workspace_pool(blocks->all->workspace), blocks->all->variables,
                               fill_unary, blocks);
    }
    if (status == DCRF_OK)
        blocks->space = make_space(blocks, blocks->used);
    memset(blocks->is_wanted, 0, blocks->all->labels * sizeof *blocks->is_wanted);
    return status;
}

/* ---- from and to the model's rows ----------------------------------------------------------- */

void dcrf_lp_blocks_read(const struct dcrf_lp_blocks *blocks, const void *from, size_t bytes,
                         void *to) {
    const size_t labels = blocks->all->labels, stride = blocks->all->stride * bytes;
    for (size_t a = 0; a < blocks->all->variables; a++) {
        const char *row = (const char *)from + a * blocks->space.stride * bytes;
        char *out = (char *)to + a * stride;
        for (size_t i = 0; i < labels; i++)
            memcpy(out + i * bytes, row + blocks->column_of[i] * bytes, bytes);
        memset(out + labels * bytes, 0, stride - labels * bytes);
    }
}

void dcrf_lp_blocks_write(const struct dcrf_lp_blocks *blocks, const float *from, float *to) {
    const size_t labels = blocks->all->labels, stride = blocks->space.stride;
    memset(to, 0, blocks->all->variables * stride * sizeof *to);
    for (size_t a = 0; a < blocks->all->variables; a++)
        for (size_t i = 0; i < labels; i++)
            if (blocks->column_of[i] < blocks->used)
                to[a * stride + blocks->column_of[i]] = from[a * blocks->all->stride + i];
}
