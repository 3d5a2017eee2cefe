/* A solution as text: the summary, the JSON result, the trace. */
#ifndef DCRF_CLI_REPORT_SOLUTION_TEXT_H
#define DCRF_CLI_REPORT_SOLUTION_TEXT_H

#include "report/energies_json.h"
#include "solution.h"

/* Why a run stopped, as the end of a sentence. */
const char *stop_reason(dcrf_status stop);

/* "54158.123", with as many digits after the point as a float's precision supports. */
#define ENERGY_TEXT_BYTES 32
const char *energy_text(double energy, char text[ENERGY_TEXT_BYTES]);

/* From setup through polishing. */
double seconds_of_run(const solution *found);

/* What became of a rough mask: "borders moved by 3.1 pixels on average; 4.2 % of the pixels
 * changed". Empty if the model has none, or without memory. */
#define MASK_TEXT_BYTES 128
const char *mask_text(const built_model *built, const solution *found, char text[MASK_TEXT_BYTES]);

void print_energies(FILE *stream, const dcrf_energy *energy);
void print_proof(FILE *stream, const proof *proven, bool is_constant);
/* How many labels of a labelling are proven right, and how many wrong. */
void print_single_pixels(const built_model *built, size_t right, size_t wrong);
/* ", on cuda:0"; nothing for the CPU. */
void print_device(FILE *stream, const built_model *built);
void print_solution(FILE *stream, const built_model *built, const solution *found);

/* The whole result. NULL if out of memory. */
json_t *solution_to_json(const model_options *model, const built_model *built,
                         const solution *found, json_t *settings);

/* One line per moment, with empty fields for unknown values. */
void write_trace(FILE *stream, const solution *found);

#endif
