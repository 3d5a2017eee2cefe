#include "report/solution_text.h"

#include "io/exif.h"
#include "io/json.h"
#include "report/changes_text.h"
#include "report/flicker.h"
#include "report/left_out_text.h"

#include <math.h>

/* ---- for people ----------------------------------------------------------------------------- */

const char *energy_text(double energy, char text[ENERGY_TEXT_BYTES]) {
    snprintf(text, ENERGY_TEXT_BYTES, "%.*f", fabs(energy) < 1e6 ? 4 : 1, energy);
    return text;
}

static void print_energy_line(FILE *stream, const char *name, double energy) {
    char text[ENERGY_TEXT_BYTES];
    fprintf(stream, "%-14s%18s", name, energy_text(energy, text));
}

void print_energies(FILE *stream, const dcrf_energy *energy) {
    print_energy_line(stream, "energy", energy->total);
    fputc('\n', stream);
    print_energy_line(stream, "  unary", energy->unary);
    fputc('\n', stream);
    print_energy_line(stream, "  pairwise", energy->pairwise);
    fputc('\n', stream);
    if (energy->cliques > 0) {
        print_energy_line(stream, "  cliques", energy->cliques);
        fputc('\n', stream);
    }
}

static void print_left_out(FILE *stream, const dcrf_left_out *left_out) {
    char text[LEFT_OUT_TEXT_BYTES];
    if (*left_out_text(left_out, ";\n      ", text))
        fprintf(stream, "note: %s\n", text);
}

void print_proof(FILE *stream, const proof *proven, bool is_constant) {
    if (!isnan(proven->lower_bound)) {
        print_energy_line(stream, "lower bound", proven->lower_bound);
        fprintf(stream, "\n%-14s%16.4f %%  no labelling is better by more than this\n", "gap",
                100 * proven->relative_gap);
        print_left_out(stream, &proven->left_out);
    }
    if (is_constant)
        fputs("note: one label wins everywhere: the weights of kernels and cliques drown the "
              "unaries.\n"
              "      Try smaller weights (or --normalize symmetric, where that is off).\n",
              stream);
}

const char *stop_reason(dcrf_status stop) {
    switch (stop) {
    case DCRF_STOP_GAP:
        return "the gap is small enough";
    case DCRF_STOP_STATIONARY:
        return "the method has converged";
    case DCRF_STOP_ITERATIONS:
        return "that was the limit";
    case DCRF_STOP_TIME:
        return "the time was up";
    case DCRF_STOP_CANCELLED:
        return "interrupted";
    case DCRF_ERROR_MEMORY:
        return "the memory was used up";
    default:
        return "done";
    }
}

static double seconds_of_solving(const dcrf_solver_info *info) {
    return info->start_s + info->solve_s + info->evaluate_s + info->round_s;
}

double seconds_of_run(const solution *found) {
    return found->setup_s + seconds_of_solving(&found->info) + found->info.polish_s +
           found->info.proof_s;
}

void print_single_pixels(const built_model *built, size_t right, size_t wrong) {
    const double pixels = (double)dcrf_model_variables(built->model);
    const char *unit = image_unit_text(&built->image);
    printf("%-14s%16.4f %%  of the %s: every optimal labelling has their label\n", "proven right",
           100 * (double)right / pixels, unit);
    printf("%-14s%16.4f %%  of the %s: no optimal labelling has their label\n", "proven wrong",
           100 * (double)wrong / pixels, unit);
}

static void print_proven(FILE *stream, const built_model *built, const solution *found) {
    const dcrf_proof_info *proven = &found->proven;
    if (!found->has_proof)
        return;
    fprintf(stream, "%-14s%16.4f %%  of the %s: every optimal labelling has their label\n",
            "proven", 100 * (double)proven->proven / (double)proven->variables,
            image_unit_text(&built->image));
    if (proven->proven == proven->variables)
        fputs("              this labelling is the only optimal one\n", stream);
}

static void print_scribbles(FILE *stream, const built_model *built) {
    const dcrf_scribbles_info *info = &built->scribbles.info;
    const dcrf_scribbles_settings *used = &built->scribbles.settings;
    fprintf(stream,
            "strokes on %zu %s; energies from colours and ways to the strokes, fitted %zu times\n",
            info->strokes, image_unit_text(&built->image), info->rounds);
    if (built->has_own_kernels)
        fprintf(stream, "kernels for scribbles: --spatial %g,%g --bilateral %g,%.3g,%g\n",
                used->spatial_sigma, used->spatial_weight, used->bilateral_sigma,
                used->bilateral_channel_sigma, used->bilateral_weight);
}

const char *mask_text(const built_model *built, const solution *found, char text[MASK_TEXT_BYTES]) {
    const dcrf_grid grid = image_grid(&built->image);
    const dcrf_view map = dcrf_view_interleaved(built->mask.map, DCRF_I32, &grid, 1);
    dcrf_mask_moves moves;
    dcrf_error error;
    *text = '\0';
    if (!built->mask.map ||
        dcrf_mask_compare(&grid, &map, found->labels, built->workspace, &moves, &error) < 0)
        return text;
    if (moves.changed == 0)
        snprintf(text, MASK_TEXT_BYTES, "nothing changed");
    else
        snprintf(
            text, MASK_TEXT_BYTES, "borders moved by %.2g %s on average; %.2g %% of the %s changed",
            moves.mean_offset, built->image.geometry ? "mm" : "pixels",
            100 * (double)moves.changed / (double)found->pixels, image_unit_text(&built->image));
    return text;
}

static void print_mask(FILE *stream, const built_model *built, const solution *found) {
    const dcrf_mask_info *info = &built->mask.info;
    char text[MASK_TEXT_BYTES];
    if (built->has_own_kernels)
        fprintf(stream, "kernels for rough masks: --spatial %.3g,%g --bilateral %.3g,%.3g,%g\n",
                info->spatial_sigma, info->spatial_weight, info->bilateral_sigma,
                info->bilateral_channel_sigma, info->bilateral_weight);
    if (*mask_text(built, found, text))
        fprintf(stream, "the mask: %s\n", text);
}

static void print_tiles(FILE *stream, const solution *found) {
    const tiles_facts *tiles = &found->tiles;
    const bool volume = tiles->along[2] * tiles->window[2] > 1;
    fprintf(stream, "in %zu tiles, %zu x %zu", tiles->count, tiles->along[0], tiles->along[1]);
    if (volume)
        fprintf(stream, " x %zu", tiles->along[2]);
    fprintf(stream, "; windows of %zu x %zu", tiles->window[0], tiles->window[1]);
    if (volume)
        fprintf(stream, " x %zu", tiles->window[2]);
    fprintf(stream, ", which overlap by %zu; about %.0f MiB of memory\n", 2 * tiles->overlap[0],
            ceil(tiles->estimated_bytes / 1048576));
    if (tiles->solved < tiles->count)
        fprintf(stream,
                "note: %zu of %zu tiles are solved; the others have the labels of the "
                "unaries alone\n",
                tiles->solved, tiles->count);
    if (!isnan(tiles->largest_gap))
        fprintf(stream,
                "%-14s%16.4f %%  the largest of a tile's own problem; there is no bound for "
                "the whole\n",
                "gap", 100 * tiles->largest_gap);
    if (!isnan(tiles->largest_gap))
        print_left_out(stream, &found->info.bound_left_out);
}

void print_device(FILE *stream, const built_model *built) {
    const char *device = device_to_tell(built->workspace);
    if (device)
        fprintf(stream, ", on %s", device);
}

static void print_flicker(FILE *stream, const built_model *built, const solution *found) {
    const bool in_tiles = found->tiles.count > 0;
    const flicker now =
        in_tiles ? found->tiles.flicker_after : flicker_of(&built->image, found->labels);
    const flicker before =
        in_tiles ? found->tiles.flicker_before : flicker_of(&built->image, found->unary_labels);
    fprintf(
        stream,
        "%-14s%16.4f %%  of the pixels that look the same in the next frame change their label; "
        "%.4f %% by the unaries alone\n",
        "flicker", 100 * flicker_share(&now), 100 * flicker_share(&before));
}

/* Why a requested gap is not reached. */
static void print_gap_note(FILE *stream, const solution *found) {
    const dcrf_solver_info *info = &found->info;
    if (!(found->gap_asked_for > 0) || info->relative_gap <= found->gap_asked_for)
        return;
    fprintf(stream, "note: the gap that was asked for, %.4g %%, is not reached: ",
            100 * found->gap_asked_for);
    if (isnan(info->lower_bound))
        fputs("only --method lp proves one\n", stream);
    else if (info->stop == DCRF_STOP_STATIONARY)
        fputs("the bound and the energy have stopped to improve\n", stream);
    else if (info->stop == DCRF_STOP_ITERATIONS)
        fputs("that takes more iterations (-n)\n", stream);
    else
        fprintf(stream, "%s (--time-limit)\n", stop_reason(info->stop));
}

/* What was done to the photograph when it was read. */
static void print_image_notes(FILE *stream, const cli_image *image) {
    if (image->orientation > EXIF_UPRIGHT)
        fprintf(stream,
                "note: the photograph is turned %s, as its EXIF orientation says; what is written "
                "is upright\n",
                exif_turn_text(image->orientation));
    if (image->scale.is_stretched)
        fprintf(stream, "note: the image's numbers run from %.6g to %.6g; scaled to 0 to 255\n",
                image->scale.low, image->scale.high);
    size_t without_data = 0;
    for (size_t i = 0; image->nodata && i < image_pixels(image); i++)
        without_data += image->nodata[i];
    if (without_data > 0)
        fprintf(stream, "note: %zu pixel%s no data, and no label in a TIFF\n", without_data,
                without_data == 1 ? " has" : "s have");
    if (image->bands > 4)
        fprintf(stream, "note: of the image's %zu bands the first three are its colours\n",
                image->bands);
}

void print_solution(FILE *stream, const built_model *built, const solution *found) {
    const dcrf_solver_info *info = &found->info;
    char size[IMAGE_TEXT_BYTES], class[CLASS_TEXT_BYTES];
    fprintf(stream, "%s, %zu labels", image_size_text(&built->image, size),
            dcrf_model_labels(built->model));
    if (dcrf_model_cliques(built->model) > 0)
        fprintf(stream, ", %zu cliques", dcrf_model_cliques(built->model));
    fprintf(stream, "; method %s", dcrf_method_name(info->method));
    print_device(stream, built);
    fputc('\n', stream);
    if (found->tiles.count > 0)
        print_tiles(stream, found);
    print_image_notes(stream, &built->image);
    unary_facts_print(stream, &built->unary);
    if (built->from_scribbles)
        print_scribbles(stream, built);
    if (built->mask.map)
        print_mask(stream, built, found);
    print_changes(stream, built, found);
    if (image_is_video(&built->image))
        print_flicker(stream, built, found);
    if (!isnan(info->energy.total))
        print_energies(stream, &info->energy);
    if (!isnan(found->unary_minimum.total) && found->tiles.count == 0) {
        print_energy_line(stream, "unary minimum", found->unary_minimum.total);
        fputs("  the labelling of the unaries alone\n", stream);
    }
    if (!isnan(found->constant.total) && found->tiles.count == 0) {
        print_energy_line(stream, "best constant", found->constant.total);
        fprintf(stream, "  %s everywhere\n",
                class_text_with_number(&built->classes, found->info.constant_label, class));
    }
    const proof proven = {info->lower_bound, info->relative_gap, info->bound_left_out};
    print_proof(stream, &proven, info->is_constant != 0);
    print_proven(stream, built, found);
    print_warnings(stream, found);
    fprintf(stream, "%zu iteration%s, %s; %.2f s setup, %.2f s solving, %.2f s polishing",
            info->iterations, info->iterations == 1 ? "" : "s", stop_reason(info->stop),
            found->setup_s, seconds_of_solving(info), info->polish_s);
    if (info->proof_s > 0)
        fprintf(stream, ", %.2f s proving", info->proof_s);
    fputc('\n', stream);
    print_gap_note(stream, found);
    if (info->proof_stop != DCRF_OK)
        fprintf(stream, "note: the proof was cut short: %s; %s\n", stop_reason(info->proof_stop),
                found->proven.sweeps > 0 || found->certificate
                    ? "it says what is proven so far"
                    : "it says what the gap proves, and there is no certificate");
    if (found->was_cut_short || info->left_out != DCRF_OK)
        fprintf(stream, "note: memory ran out: %s\n",
                found->was_cut_short ? "this is the best labelling until then"
                                     : "a part of the search was left out");
}

/* ---- for programs --------------------------------------------------------------------------- */

static json_t *run_to_json(const solution *found) {
    const dcrf_solver_info *info = &found->info;
    return json_pack("{s:s, s:I, s:s, s:f, s:f, s:f, s:o, s:o, s:o, s:o, s:o, s:I, s:o, s:b}",
                     "method", dcrf_method_name(info->method), "iterations",
                     (json_int_t)info->iterations, "stop", dcrf_status_name(info->stop), "setup_s",
                     found->setup_s, "solve_s", seconds_of_solving(info), "polish_s",
                     info->polish_s, "energy_before_polish", number_or_null(info->unpolished.total),
                     "energy_rounded", number_or_null(info->rounded.total), "energy_unary_minimum",
                     number_or_null(found->unary_minimum.total), "unary_floor",
                     number_or_null(info->unary_floor), "energy_best_constant",
                     number_or_null(found->constant.total), "best_constant_label",
                     (json_int_t)found->info.constant_label, "objective",
                     number_or_null(info->objective), "constant", info->is_constant);
}

static json_t *proven_to_json(const solution *found) {
    const dcrf_proof_info *proven = &found->proven;
    const double variables = (double)proven->variables;
    return json_pack("{s:{s:f, s:I, s:I, s:f, s:I, s:f}}", "proven", "fraction",
                     (double)proven->proven / variables, "pixels", (json_int_t)proven->proven,
                     "pixels_by_gap", (json_int_t)proven->proven_by_gap, "labels_left",
                     (double)proven->possible / variables, "sweeps", (json_int_t)proven->sweeps,
                     "seconds", found->info.proof_s);
}

static json_t *axes_to_json(const size_t numbers[DCRF_MAX_AXES]) {
    return json_pack("[I, I, I]", (json_int_t)numbers[0], (json_int_t)numbers[1],
                     (json_int_t)numbers[2]);
}

static json_t *tiles_to_json(const tiles_facts *tiles) {
    return json_pack(
        "{s:{s:I, s:I, s:o, s:o, s:o, s:o, s:f, s:I, s:f, s:o}}", "tiles", "count",
        (json_int_t)tiles->count, "solved", (json_int_t)tiles->solved, "along",
        axes_to_json(tiles->along), "window", axes_to_json(tiles->window), "overlap",
        axes_to_json(tiles->overlap), "memory_limit",
        tiles->memory_bytes ? json_integer((json_int_t)tiles->memory_bytes) : json_null(),
        "memory_estimated", tiles->estimated_bytes, "plan_bytes", (json_int_t)tiles->plan_bytes,
        "vertices_per_pixel", tiles->vertices, "largest_gap", number_or_null(tiles->largest_gap));
}

/* The labellings tried before the method's iterations. */
static json_t *candidates_to_json(const dcrf_solver_info *info) {
    json_t *tried = json_object();
    for (int k = 0; k < DCRF_CANDIDATE_KINDS; k++) {
        const dcrf_candidate *candidate = &info->candidates[k];
        if (!candidate->was_tried)
            continue;
        json_t *entry =
            json_pack("{s:o, s:o, s:f}", "energy", number_or_null(candidate->energy), "lower_bound",
                      number_or_null(candidate->lower_bound), "time_s", candidate->time_s);
        tried = json_with(tried, dcrf_candidate_kind_name((dcrf_candidate_kind)k), entry);
    }
    return tried;
}

json_t *solution_to_json(const model_options *model, const built_model *built,
                         const solution *found, json_t *settings) {
    const proof proven = {found->info.lower_bound, found->info.relative_gap,
                          found->info.bound_left_out};
    json_t *root = run_to_json(found);
    root = json_merge(root, energies_to_json(&found->info.energy, &proven));
    root = json_merge(root, json_pack("{s:o}", "candidates", candidates_to_json(&found->info)));
    root = json_merge(root, changes_to_json(built, found));
    if (found->has_proof)
        root = json_merge(root, proven_to_json(found));
    if (found->tiles.count > 0)
        root = json_merge(root, tiles_to_json(&found->tiles));
    root = json_merge(root, model_report(model, built));
    return json_merge(root, json_pack("{s:o}", "settings", settings));
}

static void write_number(FILE *stream, double value) {
    if (!isnan(value))
        fprintf(stream, ",%.9g", value);
    else
        fputc(',', stream);
}

void write_trace(FILE *stream, const solution *found) {
    fputs("time_s,iteration,objective,energy,best_energy,lower_bound,relative_gap,stage\n", stream);
    for (size_t k = 0; k < found->moment_count; k++) {
        const dcrf_moment *moment = &found->moments[k];
        fprintf(stream, "%.6f,%zu", moment->time_s, moment->iteration);
        write_number(stream, moment->objective);
        write_number(stream, moment->energy);
        write_number(stream, moment->best_energy);
        write_number(stream, moment->lower_bound);
        write_number(stream, moment->relative_gap);
        fprintf(stream, ",%s\n", dcrf_stage_name(moment->stage));
    }
}
