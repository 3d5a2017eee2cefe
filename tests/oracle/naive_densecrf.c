#include "naive_densecrf.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_FEATURES = 16, LANES = 4 };

/* ---- the lattice ---------------------------------------------------------------------------- */

struct lattice {
    size_t variables, dimension, corners, vertices;
    int *vertex;   /* variables x corners */
    float *weight; /* variables x corners */
    short *key;    /* vertices x dimension */
    int *slot;     /* open addressing: the number of a vertex, or -1 */
    size_t slots;
    int *neighbour; /* corners x vertices x 2, -1 where there is none */
};

static size_t slot_of(const struct lattice *lattice, const short *key) {
    uint64_t hash = 1469598103934665603u;
    for (size_t i = 0; i < lattice->dimension; i++)
        hash = (hash ^ (unsigned short)key[i]) * 1099511628211u;
    hash ^= hash >> 29;
    size_t at = (size_t)(hash % lattice->slots);
    while (lattice->slot[at] >= 0 &&
           memcmp(lattice->key + (size_t)lattice->slot[at] * lattice->dimension, key,
                  lattice->dimension * sizeof *key) != 0)
        at = (at + 1) % lattice->slots;
    return at;
}

static int number_of(struct lattice *lattice, const short *key) {
    const size_t at = slot_of(lattice, key);
    if (lattice->slot[at] < 0) {
        memcpy(lattice->key + lattice->vertices * lattice->dimension, key,
               lattice->dimension * sizeof *key);
        lattice->slot[at] = (int)lattice->vertices++;
    }
    return lattice->slot[at];
}

/* The corners of the simplex of one feature vector, and their weights. */
static void place(struct lattice *lattice, const float *feature, int *vertex, float *weight) {
    const size_t d = lattice->dimension;
    const float corners = (float)(d + 1), inverse = 1.0f / corners;
    const float deviation = (float)(sqrt(2.0 / 3.0) * (double)(d + 1));
    float point[MOST_FEATURES + 1], nearest[MOST_FEATURES + 1], partial = 0, off = 0;
    int rank[MOST_FEATURES + 1] = {0};
    for (size_t i = d; i >= 1; i--) {
        const float factor = (float)(1.0 / sqrt((double)(i * (i + 1))) * (double)deviation);
        const float scaled = feature[i - 1] * factor;
        const float times = (float)i * scaled;
        point[i] = partial - times;
        partial = partial + scaled;
    }
    point[0] = partial;
    for (size_t i = 0; i <= d; i++) {
        const float quotient = inverse * point[i];
        const float whole = rintf(quotient);
        nearest[i] = whole * corners;
        off += whole;
    }
    for (size_t i = 0; i <= d; i++)
        for (size_t j = i + 1; j <= d; j++)
            if (point[i] - nearest[i] < point[j] - nearest[j])
                rank[i]++;
            else
                rank[j]++;
    for (size_t i = 0; i <= d; i++) {
        rank[i] += (int)off;
        if (rank[i] < 0) {
            rank[i] += (int)d + 1;
            nearest[i] += corners;
        } else if (rank[i] > (int)d) {
            rank[i] -= (int)d + 1;
            nearest[i] -= corners;
        }
    }
    float share[MOST_FEATURES + 2] = {0};
    for (size_t i = 0; i <= d; i++) {
        const float difference = point[i] - nearest[i];
        const float part = difference * inverse;
        share[d - (size_t)rank[i]] += part;
        share[d - (size_t)rank[i] + 1] -= part;
    }
    share[0] += 1.0f + share[d + 1];
    for (size_t k = 0; k <= d; k++) {
        short key[MOST_FEATURES];
        for (size_t i = 0; i < d; i++)
            key[i] = (short)((int)nearest[i] + (int)k - (rank[i] > (int)(d - k) ? (int)d + 1 : 0));
        vertex[k] = number_of(lattice, key);
        weight[k] = share[k];
    }
}

static void lattice_free(struct lattice *lattice) {
    free(lattice->vertex);
    free(lattice->weight);
    free(lattice->key);
    free(lattice->slot);
    free(lattice->neighbour);
}

static bool lattice_new(struct lattice *lattice, size_t n, size_t d, const float *features) {
    const size_t most = (n + LANES) * (d + 1);
    *lattice = (struct lattice){.variables = n, .dimension = d, .corners = d + 1};
    lattice->slots = 2 * most + 1;
    lattice->vertex = malloc(most * sizeof *lattice->vertex);
    lattice->weight = malloc(most * sizeof *lattice->weight);
    lattice->key = malloc(most * d * sizeof *lattice->key);
    lattice->slot = malloc(lattice->slots * sizeof *lattice->slot);
    if (!lattice->vertex || !lattice->weight || !lattice->key || !lattice->slot)
        return false;
    for (size_t i = 0; i < lattice->slots; i++)
        lattice->slot[i] = -1;
    const float zeros[MOST_FEATURES] = {0};
    for (size_t a = 0; a < (n + LANES - 1) / LANES * LANES; a++)
        place(lattice, a < n ? features + a * d : zeros, lattice->vertex + a * (d + 1),
              lattice->weight + a * (d + 1));
    lattice->neighbour =
        malloc(lattice->corners * lattice->vertices * 2 * sizeof *lattice->neighbour);
    if (!lattice->neighbour)
        return false;
    for (size_t axis = 0; axis <= d; axis++)
        for (size_t v = 0; v < lattice->vertices; v++)
            for (int side = 0; side < 2; side++) {
                const int sign = side == 0 ? -1 : 1;
                short key[MOST_FEATURES];
                for (size_t i = 0; i < d; i++)
                    key[i] = (short)(lattice->key[v * d + i] + (i == axis ? -sign * (int)d : sign));
                lattice->neighbour[(axis * lattice->vertices + v) * 2 + (size_t)side] =
                    lattice->slot[slot_of(lattice, key)];
            }
    return true;
}

/* rows = K rows, for rows of `width` floats. */
static bool lattice_apply(const struct lattice *lattice, float *rows, size_t width) {
    const size_t size = (lattice->vertices + 1) * width; /* row 0 stays zero */
    float *values = calloc(size, sizeof *values), *blurred = calloc(size, sizeof *blurred);
    if (!values || !blurred) {
        free(values);
        free(blurred);
        return false;
    }
    for (size_t a = 0; a < lattice->variables; a++)
        for (size_t k = 0; k < lattice->corners; k++) {
            const size_t e = a * lattice->corners + k;
            float *to = values + (size_t)(lattice->vertex[e] + 1) * width;
            for (size_t i = 0; i < width; i++)
                to[i] += lattice->weight[e] * rows[a * width + i];
        }
    for (size_t axis = 0; axis < lattice->corners; axis++) {
        for (size_t v = 0; v < lattice->vertices; v++) {
            const int *pair = lattice->neighbour + (axis * lattice->vertices + v) * 2;
            const float *back = values + (size_t)(pair[0] + 1) * width;
            const float *ahead = values + (size_t)(pair[1] + 1) * width;
            for (size_t i = 0; i < width; i++)
                blurred[(v + 1) * width + i] =
                    values[(v + 1) * width + i] + 0.5f * (back[i] + ahead[i]);
        }
        float *swap = values;
        values = blurred;
        blurred = swap;
    }
    const float alpha = 1.0f / (1 + powf(2, -(float)lattice->dimension));
    memset(rows, 0, lattice->variables * width * sizeof *rows);
    for (size_t a = 0; a < lattice->variables; a++)
        for (size_t k = 0; k < lattice->corners; k++) {
            const size_t e = a * lattice->corners + k;
            const float *from = values + (size_t)(lattice->vertex[e] + 1) * width;
            const float both = lattice->weight[e] * alpha;
            for (size_t i = 0; i < width; i++) /* up to 2 labels: another order */
                rows[a * width + i] +=
                    width <= 2 ? lattice->weight[e] * from[i] * alpha : both * from[i];
        }
    free(values);
    free(blurred);
    return true;
}

/* ---- the model ------------------------------------------------------------------------------ */

struct term {
    struct lattice lattice;
    float *norm;
    int kind, normalization;
    float *values;
};

struct naive_crf {
    size_t variables, labels, terms;
    float *unary; /* variables x labels */
    struct term *term;
};

naive_crf *naive_new(size_t variables, size_t labels, const float *unary) {
    naive_crf *crf = calloc(1, sizeof *crf);
    if (!crf)
        return NULL;
    crf->variables = variables;
    crf->labels = labels;
    crf->unary = malloc(variables * labels * sizeof *crf->unary);
    if (!crf->unary) {
        free(crf);
        return NULL;
    }
    for (size_t a = 0; a < variables; a++)
        for (size_t i = 0; i < labels; i++)
            crf->unary[a * labels + i] = unary[i * variables + a];
    return crf;
}

static void term_clear(struct term *term) {
    lattice_free(&term->lattice);
    free(term->norm);
    free(term->values);
}

void naive_free(naive_crf *crf) {
    for (size_t m = 0; m < crf->terms; m++)
        term_clear(&crf->term[m]);
    free(crf->term);
    free(crf->unary);
    free(crf);
}

int naive_add(naive_crf *crf, size_t dimension, const float *features, int kind,
              const float *values, int normalization) {
    const size_t n = crf->variables, labels = crf->labels;
    const size_t count = kind == 0 ? 1 : kind == 1 ? labels : labels * labels;
    struct term term = {.kind = kind, .normalization = normalization};
    struct term *terms = realloc(crf->term, (crf->terms + 1) * sizeof *terms);
    if (!terms)
        return -1;
    crf->term = terms;
    term.norm = malloc(n * sizeof *term.norm);
    term.values = malloc(count * sizeof *term.values);
    for (size_t a = 0; term.norm && a < n; a++)
        term.norm[a] = 1;
    if (!term.norm || !term.values || !lattice_new(&term.lattice, n, dimension, features) ||
        !lattice_apply(&term.lattice, term.norm, 1)) {
        term_clear(&term);
        return -1;
    }
    for (size_t a = 0; a < n; a++) {
        const double sum = (double)term.norm[a] + 1e-20;
        term.norm[a] = (float)(normalization == 3 ? 1.0 / sqrt(sum) : 1.0 / sum);
    }
    for (size_t i = 0; i < count; i++)
        term.values[i] =
            kind < 2 ? values[i] : 0.5f * (values[i] + values[i % labels * labels + i / labels]);
    crf->term[crf->terms++] = term;
    return 0;
}

void naive_features(size_t width, size_t height, float sx, float sy, size_t channels,
                    const unsigned char *image, const float *channel_sigma, float *out) {
    for (size_t y = 0; y < height; y++)
        for (size_t x = 0; x < width; x++) {
            *out++ = (float)x / sx;
            *out++ = (float)y / sy;
            for (size_t c = 0; c < channels; c++)
                *out++ = (float)image[(y * width + x) * channels + c] / channel_sigma[c];
        }
}

/* ---- mean field ----------------------------------------------------------------------------- */

static void normalize(const struct term *term, bool before, float *rows, size_t n, size_t labels) {
    if (term->normalization != 3 && term->normalization != (before ? 1 : 2))
        return;
    for (size_t a = 0; a < n; a++)
        for (size_t i = 0; i < labels; i++)
            rows[a * labels + i] *= term->norm[a];
}

/* field -= mu K q; `rows` holds q and is lost. */
static bool subtract_message(const naive_crf *crf, const struct term *term, float *rows,
                             float *field) {
    const size_t n = crf->variables, labels = crf->labels;
    normalize(term, true, rows, n, labels);
    if (!lattice_apply(&term->lattice, rows, labels))
        return false;
    normalize(term, false, rows, n, labels);
    for (size_t a = 0; a < n; a++)
        for (size_t i = 0; i < labels; i++) {
            const float *in = rows + a * labels;
            float message = 0;
            if (term->kind == 0)
                message = -term->values[0] * in[i];
            else if (term->kind == 1)
                message = term->values[i] * in[i];
            for (size_t j = 0; term->kind == 2 && j < labels; j++)
                message += term->values[j * labels + i] * in[j];
            field[a * labels + i] -= message;
        }
    return true;
}

static void softmax(const float *field, float *q, size_t n, size_t labels) {
    for (size_t a = 0; a < n; a++, field += labels, q += labels) {
        float top = field[0], sum = 0;
        for (size_t i = 1; i < labels; i++)
            top = field[i] > top ? field[i] : top;
        for (size_t i = 0; i < labels; i++)
            sum += q[i] = expf(field[i] - top);
        for (size_t i = 0; i < labels; i++)
            q[i] /= sum;
    }
}

int naive_infer(const naive_crf *crf, size_t iterations, float *q) {
    const size_t n = crf->variables, labels = crf->labels, size = n * labels;
    float *field = malloc(size * sizeof *field), *rows = malloc(size * sizeof *rows);
    float *current = malloc(size * sizeof *current);
    bool is_good = field && rows && current;
    for (size_t i = 0; is_good && i < size; i++)
        field[i] = -crf->unary[i];
    if (is_good)
        softmax(field, current, n, labels);
    for (size_t t = 0; is_good && t < iterations; t++) {
        for (size_t i = 0; i < size; i++)
            field[i] = -crf->unary[i];
        for (size_t m = 0; is_good && m < crf->terms; m++) {
            memcpy(rows, current, size * sizeof *rows);
            is_good = subtract_message(crf, &crf->term[m], rows, field);
        }
        softmax(field, current, n, labels);
    }
    for (size_t a = 0; is_good && a < n; a++)
        for (size_t i = 0; i < labels; i++)
            q[i * n + a] = current[a * labels + i];
    free(field);
    free(rows);
    free(current);
    return is_good ? 0 : -1;
}
