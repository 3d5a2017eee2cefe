/* Georeferences of a TIFF and of a world file: what was read can be written with a picture. */
#include "check.h"
#include "io/tiff_write.h"
#include "target.h"

#include <math.h>
#include <stdlib.h>

static void write_with(const geo_reference *geo) {
    static const uint16_t labels[6] = {0, 1, 2, 3, 4, 5};
    char *bytes = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&bytes, &size);
    const double nodata = geo_label_nodata(geo, 6);
    const tiff_layout layout = {3, 2, false, NULL, geo, &nodata};
    tiff_writer *writer = NULL;
    cli_problem problem = {0, ""};
    fuzz_check(nodata >= 6 && nodata <= 255);
    if (stream &&
        (!tiff_writer_new(&writer, stream, "out", &layout, &problem) ||
         !tiff_writer_rows(writer, labels, 2, &problem) || !tiff_writer_end(writer, &problem)))
        fuzz_check(problem.text[0]);
    tiff_writer_free(&writer);
    if (stream) {
        geo_write_world(stream, geo);
        fclose(stream);
    }
    free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    cli_problem problem = {0, ""};
    geo_reference *geo = NULL;
    double matrix[GEO_MATRIX];
    fuzz_check(geo_from_tiff(data, size, "input", &geo, &problem));
    if (geo)
        write_with(geo);
    geo_free(&geo);
    if (geo_parse_world(data, size, matrix))
        for (size_t i = 0; i < GEO_MATRIX; i++)
            fuzz_check(!isnan(matrix[i]));
    return 0;
}
