/* The model options, which all subcommands share, and the model built from them. */
#ifndef DCRF_CLI_MODEL_MODEL_OPTIONS_H
#define DCRF_CLI_MODEL_MODEL_OPTIONS_H

#include "args/options.h"
#include "clock.h"
#include "model/classes.h"
#include "model/device.h"
#include "model/scribbles.h"
#include "model/strength.h"
#include "model/unary.h"
#include "prior/mask.h"

#include <dcrf/dcrf.h>
#include <jansson.h>

/* ---- kernels -------------------------------------------------------------------------------- */

typedef struct kernel_setting {
    bool on;
    double sigma_px;     /* in a volume: mm */
    double sigma_colour; /* bilateral only; colours range from 0 to 255, volumes are as stored */
    bool weighted;       /* its weight is given; otherwise it gets a share of the strength */
    double weight;
} kernel_setting;

typedef struct kernel_options {
    kernel_setting spatial;
    kernel_setting bilateral;
    double temporal;    /* sigma along time, in frames of a video */
    int normalization;  /* dcrf_normalization */
    int operator_kind;  /* dcrf_operator_kind */
    size_t threads;     /* 0: one per core */
    const char *device; /* NULL: the CPU */
} kernel_options;

extern const cli_option kernel_option_table[];

#define KERNELS_MAX 2

/* What an IMAGE operand may be, for help texts. */
#define IMAGE_OPERAND_HELP                                                                         \
    "the photograph (PNG, JPEG, PNM, TIFF, BMP, WebP), a volume (NIfTI: .nii, .nii.gz), or a "     \
    "folder of the frames of a video"

/* The enabled kernels, in the order in which models get them; a kernel without a given weight
 * has weight 1. The image must outlive them. */
size_t kernels_from_options(const kernel_options *options, const cli_image *image,
                            dcrf_kernel kernels[KERNELS_MAX]);

/* Which of them have a given weight. Returns the number of enabled kernels. */
size_t kernels_weighted(const kernel_options *options, bool weighted[KERNELS_MAX]);

/* "spatial" or "bilateral". */
const char *kernel_name(const dcrf_kernel *kernel);

/* ---- models --------------------------------------------------------------------------------- */

typedef struct model_options {
    kernel_options kernels;
    strength_options strength;
    unary_options unary;
    const char *compatibility;  /* a name, tree:FILE, cuts:FILE, or FILE.npy */
    const char *cliques_source; /* "none", a method of superpixels, or a file */
    size_t min_region_px;       /* 0: the method's default */
    double gamma;               /* NaN: from the strength of the kernels */
    double eta;
} model_options;

extern const cli_option label_option_table[];
extern const cli_option clique_option_table[];

/* The groups of model options, for a settings struct of type `settings` with a member
 * `member` of type model_options. */
#define MODEL_OPTION_GROUPS(settings, member)                                                      \
    {"Unary energies", unary_option_table, offsetof(settings, member.unary)},                      \
        {"Kernels", kernel_option_table, offsetof(settings, member.kernels)},                      \
        {"Labels", label_option_table, offsetof(settings, member)},                                \
        {"Strength", strength_option_table, offsetof(settings, member.strength)}, {                \
        "Cliques", clique_option_table, offsetof(settings, member)                                 \
    }

/* The regions of the cliques, from a file or superpixels; the caller frees them. `image_file` is
 * for messages. */
bool clique_regions_find(const model_options *options, const char *image_file,
                         const cli_image *image, dcrf_workspace *workspace, int32_t **regions,
                         cli_problem *problem);

/* Use the regions as cliques of a model over the image. */
bool model_set_cliques(const model_options *options, const cli_image *image, const int32_t *regions,
                       dcrf_model *model, cli_problem *problem);

typedef struct built_model {
    cli_image image;
    unary_facts unary;
    class_names classes; /* none: labels go by their numbers */
    dcrf_model *model;
    dcrf_kernel kernels[KERNELS_MAX]; /* as in the model, for reports */
    size_t kernel_count;
    applied_strength strength;
    bool from_scribbles;  /* the energies are from scribbles */
    bool has_own_kernels; /* the kernels are the defaults for scribbles or masks */
    scribble_summary scribbles;
    mask_summary mask;
    dcrf_workspace *workspace;
    time_frame time;
} built_model;

/* Are the options of kernels and strength consistent? */
bool model_check_kernels(const model_options *options, cli_problem *problem);

/* Read the image and the option files and build the model within the command's time limit. On
 * failure there is nothing to free, but freeing is allowed. */
bool model_build(const model_options *options, const char *image_file, time_frame time,
                 built_model *built, cli_problem *problem);
void model_free(built_model *built);

/* The steps of building a model that do not depend on the source of the image and energies. The
 * workspace gets the limit of built->time. */
bool model_start_workspace(const model_options *options, built_model *built, cli_problem *problem);
bool model_name_classes(const model_options *options, built_model *built, cli_problem *problem);
bool model_add_kernels(const model_options *options, const char *image_file, built_model *built,
                       cli_problem *problem);
bool model_set_strength(const model_options *options, built_model *built, cli_problem *problem);

/* The operators of the model; the plan must be freed before the model. */
bool model_plan(const model_options *options, const char *image_file, const built_model *built,
                dcrf_plan **plan, cli_problem *problem);

/* Read a labelling of the image in which every pixel has one of the model's labels; the caller
 * frees it. Pixels with the number `void_number` (NULL: none) are unlabelled: they get the label
 * of lowest unary energy. */
bool model_read_labels(const built_model *built, const char *path, const unknown_value *void_number,
                       uint16_t **labels, cli_problem *problem);

/* What every JSON result says about its model; NULL if out of memory. */
json_t *model_report(const model_options *options, const built_model *built);

#endif
