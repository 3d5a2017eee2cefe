#include "report/energies_json.h"

json_t *energies_to_json(const dcrf_energy *energy, const proof *proven) {
    return json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o}", "energy", number_or_null(energy->total), "energy_unary",
        number_or_null(energy->unary), "energy_pairwise", number_or_null(energy->pairwise),
        "energy_cliques", number_or_null(energy->cliques), "lower_bound",
        number_or_null(proven->lower_bound), "relative_gap", number_or_null(proven->relative_gap));
}
