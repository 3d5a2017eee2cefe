/* A palette that stays readable for colour-blind people.
 *
 * The first eight colours are those of Okabe and Ito ("Color universal design", 2008), which
 * were chosen to be distinguishable with any common form of colour vision. After them, every
 * colour is the one of a fixed grid that is farthest from all before it. The distance of two
 * colours is the smallest of three: as seen with normal, protanope and deuteranope vision. The
 * latter two are simulated in linear RGB by the projections of Vienot, Brettel and Mollon
 * (1999), and distances are Euclidean in CIELAB, in which equal distances look about equally
 * large. */
#include "model/palette.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const uint8_t okabe_ito[][3] = {
    {0, 0, 0},      {230, 159, 0}, {86, 180, 233}, {0, 158, 115},
    {240, 228, 66}, {0, 114, 178}, {213, 94, 0},   {204, 121, 167},
};
#define OKABE_ITO_COLOURS (sizeof okabe_ito / sizeof okabe_ito[0])

/* ---- colour vision -------------------------------------------------------------------------- */

enum { NORMAL, PROTANOPE, DEUTERANOPE, VISIONS };

static const double simulation[VISIONS][3][3] = {
    {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}},
    {{0.11238, 0.88762, 0}, {0.11238, 0.88762, 0}, {0.00401, -0.00401, 1}},
    {{0.29275, 0.70725, 0}, {0.29275, 0.70725, 0}, {-0.02234, 0.02234, 1}},
};

/* From linear RGB to XYZ, divided by the white point D65. */
static const double to_xyz[3][3] = {
    {0.43395, 0.37621, 0.18982}, {0.21267, 0.71516, 0.07217}, {0.01776, 0.10947, 0.87277}};

typedef struct seen_colour {
    double lab[VISIONS][3];
} seen_colour;

static void multiply(const double matrix[3][3], const double in[3], double out[3]) {
    for (int r = 0; r < 3; r++)
        out[r] = matrix[r][0] * in[0] + matrix[r][1] * in[1] + matrix[r][2] * in[2];
}

static double lab_curve(double t) {
    return t > 216.0 / 24389 ? cbrt(t) : (24389.0 / 27 * t + 16) / 116;
}

static seen_colour see(const uint8_t rgb[3]) {
    seen_colour seen;
    double linear[3];
    for (int c = 0; c < 3; c++) {
        const double v = rgb[c] / 255.0;
        linear[c] = v <= 0.04045 ? v / 12.92 : pow((v + 0.055) / 1.055, 2.4);
    }
    for (int vision = 0; vision < VISIONS; vision++) {
        double simulated[3], xyz[3];
        multiply(simulation[vision], linear, simulated);
        multiply(to_xyz, simulated, xyz);
        const double fx = lab_curve(xyz[0]), fy = lab_curve(xyz[1]), fz = lab_curve(xyz[2]);
        seen.lab[vision][0] = 116 * fy - 16;
        seen.lab[vision][1] = 500 * (fx - fy);
        seen.lab[vision][2] = 200 * (fy - fz);
    }
    return seen;
}

static double squared_distance(const seen_colour *a, const seen_colour *b) {
    double smallest = INFINITY;
    for (int vision = 0; vision < VISIONS; vision++) {
        double sum = 0;
        for (int k = 0; k < 3; k++) {
            const double d = a->lab[vision][k] - b->lab[vision][k];
            sum += d * d;
        }
        smallest = fmin(smallest, sum);
    }
    return smallest;
}

/* ---- the default ---------------------------------------------------------------------------- */

#define LEVELS 9 /* per channel in the grid of candidates */
#define CANDIDATES (LEVELS * LEVELS * LEVELS)

typedef struct candidate {
    uint8_t rgb[3];
    seen_colour seen;
    double nearest; /* squared distance to the nearest chosen colour */
} candidate;

bool palette_default(palette *colours, cli_problem *problem) {
    candidate *candidates = malloc(CANDIDATES * sizeof *candidates);
    if (!candidates)
        return out_of_memory(problem, "the palette");
    for (size_t k = 0; k < CANDIDATES; k++) {
        const size_t level[3] = {k / (LEVELS * LEVELS), k / LEVELS % LEVELS, k % LEVELS};
        for (int c = 0; c < 3; c++)
            candidates[k].rgb[c] = (uint8_t)(level[c] * 255 / (LEVELS - 1));
        candidates[k].seen = see(candidates[k].rgb);
        candidates[k].nearest = INFINITY;
    }
    memcpy(colours->rgb, okabe_ito, sizeof okabe_ito);
    for (size_t i = 0; i < PALETTE_COLOURS; i++) {
        if (i >= OKABE_ITO_COLOURS) {
            const candidate *farthest = candidates;
            for (size_t k = 1; k < CANDIDATES; k++)
                if (candidates[k].nearest > farthest->nearest)
                    farthest = &candidates[k];
            memcpy(colours->rgb[i], farthest->rgb, sizeof colours->rgb[i]);
        }
        const seen_colour added = see(colours->rgb[i]);
        for (size_t k = 0; k < CANDIDATES; k++)
            candidates[k].nearest =
                fmin(candidates[k].nearest, squared_distance(&candidates[k].seen, &added));
    }
    free(candidates);
    return true;
}
