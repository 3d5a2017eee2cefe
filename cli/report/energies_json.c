#include "report/energies_json.h"

static json_t *left_out_to_json(const dcrf_left_out *left_out) {
    return json_pack("{s:f, s:f, s:o, s:o}", "distance", left_out->distance, "fraction",
                     left_out->fraction, "energy", number_or_null(left_out->energy), "gap",
                     number_or_null(left_out->gap));
}

json_t *energies_to_json(const dcrf_energy *energy, const proof *proven) {
    json_t *root = json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o}", "energy", number_or_null(energy->total), "energy_unary",
        number_or_null(energy->unary), "energy_pairwise", number_or_null(energy->pairwise),
        "energy_cliques", number_or_null(energy->cliques), "lower_bound",
        number_or_null(proven->lower_bound), "relative_gap", number_or_null(proven->relative_gap));
    return proven->left_out.fraction > 0
               ? json_with(root, "bound_left_out", left_out_to_json(&proven->left_out))
               : root;
}
