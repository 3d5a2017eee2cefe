/* The presets.
 *
 * A preset is a model: kernels, their normalization, cliques. The method remains the user's choice.
 *
 * The first ones are settings found in the public code of many projects. They were written for a
 * library that counts a pair of pixels once; here a pair counts in both orders, so their weights
 * are half of those printed there.
 *
 * The others are the cross-validated parameters of Joy et al., "Efficient relaxations for dense
 * CRFs with sparse higher order potentials", for MSRC-21 and Pascal VOC, each tuned for the
 * method in its name. The kernels of the paper are not normalized and its pairs count in both
 * orders, so the numbers are as printed. */
#include "args/presets.h"

#include "args/nearest.h"

#include <string.h>

const cli_preset presets[] = {
    {"common", "what most projects copy", "mf, 5 to 10 iterations", "symmetric", "3,1.5", "80,13,5",
     NULL, NULL, NULL, NULL},
    {"weak", "weakly supervised segmentation, Pascal VOC", "mf, 10 iterations", "symmetric",
     "3,1.5", "50,5,5", NULL, NULL, NULL, NULL},
    {"deeplab", "networks of the DeepLab family, Pascal VOC and COCO", "mf, 10 iterations",
     "symmetric", "1,1.5", "67,3,2", NULL, NULL, NULL, NULL},
    {"wide", "a second family of networks, Pascal VOC and COCO", "mf, 10 iterations", "symmetric",
     "1,0.5", "121,5,2", NULL, NULL, NULL, NULL},
    {"saliency", "salient objects, two labels", "mf, 1 iteration", "symmetric", "3,1.5", "60,5,2.5",
     NULL, NULL, NULL, NULL},
    {"microscopy", "volumes from microscopes", "mf, 5 iterations", "symmetric", "1,2.5", "10,5,5",
     NULL, NULL, NULL, NULL},
    {"stereo", "disparities of rectified pairs, energies as examples/stereo.py makes them",
     "mf, 8 iterations", "symmetric", "2,0.3", "12,8,2", NULL, NULL, NULL, "truncated-linear:4"},
    {"paper-msrc-mf", "Joy et al., MSRC-21", "mf, 5 iterations", "none", "4.10,77.047",
     "47.79,4.69,100", NULL, NULL, NULL, NULL},
    {"paper-msrc-qp", "Joy et al., MSRC-21", "qp", "none", "2.36,22.89", "48.73,6.52,60.50", NULL,
     NULL, NULL, NULL},
    {"paper-msrc-mf-cliques", "Joy et al., MSRC-21", "mf, 5 iterations", "none", "6.53,4.46",
     "50,9.74,11.56", "10", "54.88", "876.08", NULL},
    {"paper-msrc-qp-cliques", "Joy et al., MSRC-21", "qp", "none", "3.74,17.67", "39.76,9.49,54.56",
     "100", "19.71", "109.0", NULL},
    {"paper-pascal-mf", "Joy et al., Pascal VOC", "mf, 5 iterations", "none", "1.00,29.19",
     "17.82,6.14,32.56", NULL, NULL, NULL, NULL},
    {"paper-pascal-qp", "Joy et al., Pascal VOC", "qp", "none", "1.00,100", "19.11,6.08,55.19",
     NULL, NULL, NULL, NULL},
    {"paper-pascal-mf-cliques", "Joy et al., Pascal VOC", "mf, 5 iterations", "none", "1.20,76.38",
     "16.32,38.10,1.45", "27", "20.71", "467.36", NULL},
    {"paper-pascal-qp-cliques", "Joy et al., Pascal VOC", "qp", "none", "1.00,99.53",
     "13.30,7.89,100.00", "97", "100", "139.70", NULL},
};
const size_t preset_count = sizeof presets / sizeof presets[0];

size_t preset_values(const cli_preset *preset, preset_value values[PRESET_VALUES_MAX]) {
    const preset_value all[PRESET_VALUES_MAX] = {
        {"normalize", preset->normalize},
        {"spatial", preset->spatial},
        {"bilateral", preset->bilateral},
        {"compatibility", preset->compatibility},
        {"cliques", preset->min_region ? "meanshift" : "none"},
        {"min-region", preset->min_region},
        {"gamma", preset->gamma},
        {"eta", preset->eta},
    };
    size_t count = 0;
    for (size_t k = 0; k < PRESET_VALUES_MAX; k++)
        if (all[k].text)
            values[count++] = all[k];
    return count;
}

const cli_preset *find_preset(const char *name, cli_problem *problem) {
    nearest_name nearest = nearest_start(name);
    for (size_t i = 0; i < preset_count; i++) {
        if (strcmp(presets[i].name, name) == 0)
            return &presets[i];
        nearest_offer(&nearest, presets[i].name);
    }
    if (nearest.best)
        bad_input(problem, "--preset", "'%s' is unknown; did you mean %s?", name, nearest.best);
    else
        bad_input(problem, "--preset", "'%s' is unknown; 'dcrf presets' lists the names", name);
    return NULL;
}
