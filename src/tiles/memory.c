/* Estimates how much memory a problem takes.
 *
 * Per variable: tables of the lattice, features, labels; blocks of one float per label (padded) for
 * variables and for vertices of the lattice, and the tables of a vertex. The constants are fitted
 * to peaks measured with 2 and 21 labels on an image with grain (0.06 vertices per variable) and on
 * noise (5), with a margin of a tenth: docs/results/large.md. The LP's has another third, since its
 * peak depends on how far it gets. */
#include <dcrf/grid.h>
#include <dcrf/tiles.h>

#define MARGIN 1.1
#define BYTES_PER_FEATURE 12.0

struct appetite {
    double bytes;         /* per variable, excluding features */
    double vertex_bytes;  /* per vertex */
    double blocks;        /* per variable */
    double vertex_blocks; /* per vertex */
};

static struct appetite appetite_of(dcrf_method method) {
    switch (method) {
    case DCRF_METHOD_LP:
        return (struct appetite){150, 120, 17, 3.5};
    case DCRF_METHOD_QP:
        return (struct appetite){72, 49, 7.8, 3.3};
    case DCRF_METHOD_MF:
        break;
    }
    return (struct appetite){72, 49, 4.1, 3.2};
}

double dcrf_bytes_per_variable(dcrf_method method, size_t labels, size_t channels,
                               double vertices) {
    const struct appetite appetite = appetite_of(method);
    const double block = (double)(dcrf_padded(labels) * sizeof(float));
    /* Assume three features for the position, the maximum. */
    return MARGIN * (appetite.bytes + BYTES_PER_FEATURE * (double)(channels + 3) +
                     appetite.vertex_bytes * vertices +
                     block * (appetite.blocks + appetite.vertex_blocks * vertices));
}
