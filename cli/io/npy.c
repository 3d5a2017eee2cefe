#include "io/npy.h"

#include "io/number_bits.h"

#include <stdlib.h>
#include <string.h>

static const uint8_t magic[] = {0x93, 'N', 'U', 'M', 'P', 'Y'};

bool npy_recognize(const uint8_t *data, size_t size) {
    return size >= sizeof magic && memcmp(data, magic, sizeof magic) == 0;
}

bool npy_holds_integers(const npy_array *array) {
    return array->kind != 'f';
}

const char *npy_shape_text(const npy_array *array, char text[NPY_TEXT_BYTES]) {
    size_t used = 0;
    for (size_t axis = 0; axis < array->axes && used < NPY_TEXT_BYTES; axis++)
        used += (size_t)snprintf(text + used, NPY_TEXT_BYTES - used, "%s%zu", axis ? ", " : "(",
                                 array->shape[axis]);
    if (used < NPY_TEXT_BYTES)
        snprintf(text + used, NPY_TEXT_BYTES - used, array->axes == 1 ? ",)" : ")");
    return text;
}

const char *npy_type_text(const npy_array *array, char text[NPY_TEXT_BYTES]) {
    if (array->kind == 'b')
        snprintf(text, NPY_TEXT_BYTES, "bool");
    else
        snprintf(text, NPY_TEXT_BYTES, "%s%zu",
                 array->kind == 'f'   ? "float"
                 : array->kind == 'u' ? "uint"
                                      : "int",
                 8 * array->item_bytes);
    return text;
}

bool npy_parse(const uint8_t *data, size_t size, const char *file, npy_array *array,
               cli_problem *problem) {
    *array = (npy_array){0};
    if (size == 0)
        return bad_input(problem, file, "is empty; a .npy file is needed");
    if (size >= 4 && memcmp(data, "PK\3\4", 4) == 0)
        return bad_input(problem, file, "is a .npz archive; save one array with numpy.save");
    if (!npy_recognize(data, size))
        return bad_input(problem, file, "is not a .npy file; save the array with numpy.save");
    if (size < sizeof magic + 2)
        return bad_input(problem, file, "is truncated inside its .npy header");
    const unsigned major = data[sizeof magic], minor = data[sizeof magic + 1];
    if (major < 1 || major > 3 || minor != 0)
        return bad_input(problem, file, "is in .npy version %u.%u; versions 1.0 to 3.0 are known",
                         major, minor);

    const size_t length_bytes = major == 1 ? 2 : 4, prefix = sizeof magic + 2 + length_bytes;
    if (size < prefix)
        return bad_input(problem, file, "is truncated inside its .npy header");
    size_t header = 0;
    for (size_t i = length_bytes; i-- > 0;)
        header = header << 8 | data[sizeof magic + 2 + i];
    if (header > size - prefix)
        return bad_input(problem, file,
                         "is truncated: its .npy header claims %zu bytes and %zu are there", header,
                         size - prefix);
    if (!npy_parse_header((const char *)data + prefix, header, file, array, problem))
        return false;

    /* npy_parse_header has checked that the product does not overflow. */
    const size_t wanted = array->count * array->item_bytes, available = size - prefix - header;
    if (available < wanted)
        return bad_input(problem, file,
                         "is truncated: its shape needs %zu bytes of data and %zu are there",
                         wanted, available);
    if (available > wanted)
        return bad_input(problem, file, "has %zu bytes too many after its data; save it again",
                         available - wanted);
    array->elements = data + prefix + header;
    return true;
}

/* ---- elements ------------------------------------------------------------------------------- */

static double element_value(const npy_array *array, size_t index) {
    return number_of_kind(array->elements + index * array->item_bytes, array->item_bytes,
                          array->big_endian, array->kind);
}

/* Iterates over the elements in C order, whatever the order in the file. */
typedef struct element_walk {
    size_t position[NPY_MAX_AXES];
    size_t stride[NPY_MAX_AXES]; /* elements */
    size_t index;                /* in the file */
} element_walk;

static element_walk walk_start(const npy_array *array) {
    element_walk walk = {{0}, {0}, 0};
    size_t stride = 1;
    for (size_t i = 0; i < array->axes; i++) {
        const size_t axis = array->fortran_order ? i : array->axes - 1 - i;
        walk.stride[axis] = stride;
        stride *= array->shape[axis];
    }
    return walk;
}

static void walk_next(element_walk *walk, const npy_array *array) {
    for (size_t axis = array->axes; axis-- > 0;) {
        walk->index += walk->stride[axis];
        if (++walk->position[axis] < array->shape[axis])
            return;
        walk->index -= walk->stride[axis] * array->shape[axis];
        walk->position[axis] = 0;
    }
}

const float *npy_floats_in_place(const npy_array *array) {
    const bool fitting = array->kind == 'f' && array->item_bytes == sizeof(float) &&
                         array->big_endian == number_machine_is_big_endian() &&
                         !array->fortran_order && (uintptr_t)array->elements % _Alignof(float) == 0;
    return fitting ? (const float *)(const void *)array->elements : NULL;
}

/* The values of all elements of one or two bytes, by these bytes; NULL if that is no less work than
 * the array, or out of memory. Networks often write half precision. */
static float *values_of_bytes(const npy_array *array) {
    const size_t bytes = array->item_bytes, count = bytes > 2 ? SIZE_MAX : (size_t)1 << 8 * bytes;
    float *values = array->count > count ? malloc(count * sizeof *values) : NULL;
    for (size_t i = 0; values && i < count; i++) {
        const uint8_t element[2] = {(uint8_t)i, (uint8_t)(i >> 8)};
        values[i] = (float)number_of_kind(element, bytes, array->big_endian, array->kind);
    }
    return values;
}

bool npy_to_floats(const npy_array *array, const char *file, float **floats, cli_problem *problem) {
    const size_t bytes = array->item_bytes;
    *floats = malloc(array->count * sizeof **floats);
    if (!*floats)
        return out_of_memory(problem, file);
    element_walk walk = walk_start(array);
    float *values = values_of_bytes(array);
    for (size_t i = 0; i < array->count; i++) {
        const size_t index = array->fortran_order ? walk.index : i;
        const uint8_t *element = array->elements + index * bytes;
        (*floats)[i] = values ? values[element[0] + (bytes > 1 ? 256u * element[1] : 0)]
                              : (float)element_value(array, index);
        if (array->fortran_order)
            walk_next(&walk, array);
    }
    free(values);
    return true;
}

bool npy_to_integers(const npy_array *array, const char *file, int32_t **integers,
                     cli_problem *problem) {
    char text[NPY_TEXT_BYTES];
    *integers = NULL;
    if (!npy_holds_integers(array))
        return bad_input(problem, file, "holds %s where integers are needed; convert it with %s",
                         npy_type_text(array, text), "array.astype('int32')");
    int32_t *converted = malloc(array->count * sizeof *converted);
    if (!converted)
        return out_of_memory(problem, file);
    element_walk walk = walk_start(array);
    for (size_t i = 0; i < array->count; i++, walk_next(&walk, array)) {
        const double value = element_value(array, walk.index);
        if (value < INT32_MIN || value > INT32_MAX) {
            free(converted);
            return bad_input(problem, file, "holds %.0f (element %zu), which 32 bits cannot hold",
                             value, i);
        }
        converted[i] = (int32_t)value;
    }
    *integers = converted;
    return true;
}

/* ---- writing -------------------------------------------------------------------------------- */

/* The magic number, the version and the header; `descr` is the type as NumPy writes it. Returns
 * the number of elements. */
static size_t write_header(FILE *stream, const char *descr, const size_t *shape, size_t axes) {
    /* The elements begin at a multiple of 64 bytes, as NumPy requires. */
    enum { PREFIX_BYTES = 10, ALIGNMENT = 64, HEADER_BYTES = 256 };
    npy_array described = {.axes = axes, .count = 1};
    for (size_t axis = 0; axis < axes; axis++) {
        described.shape[axis] = shape[axis];
        described.count *= shape[axis];
    }
    char header[HEADER_BYTES], text[NPY_TEXT_BYTES];
    int length =
        snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }",
                 descr, npy_shape_text(&described, text));
    for (; (PREFIX_BYTES + length + 1) % ALIGNMENT != 0; length++)
        header[length] = ' ';
    header[length++] = '\n';

    const uint8_t version_and_length[] = {1, 0, (uint8_t)length, (uint8_t)(length >> 8)};
    fwrite(magic, 1, sizeof magic, stream);
    fwrite(version_and_length, 1, sizeof version_and_length, stream);
    fwrite(header, 1, (size_t)length, stream);
    return described.count;
}

static void write_little_endian(FILE *stream, uint32_t bits) {
    const uint8_t little[] = {(uint8_t)bits, (uint8_t)(bits >> 8), (uint8_t)(bits >> 16),
                              (uint8_t)(bits >> 24)};
    fwrite(little, 1, sizeof little, stream);
}

void npy_write_header(FILE *stream, const char *type, const size_t *shape, size_t axes) {
    write_header(stream, type, shape, axes);
}

void npy_append_floats(FILE *stream, const float *floats, size_t count) {
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, floats + i, sizeof bits);
        write_little_endian(stream, bits);
    }
}

void npy_append_labels(FILE *stream, const uint16_t *labels, size_t count, size_t bytes_each) {
    for (size_t i = 0; i < count; i++) {
        const uint8_t little[] = {(uint8_t)labels[i], (uint8_t)(labels[i] >> 8)};
        fwrite(little, 1, bytes_each, stream);
    }
}

void npy_write_floats(FILE *stream, const size_t *shape, size_t axes, const float *floats) {
    npy_append_floats(stream, floats, write_header(stream, "<f4", shape, axes));
}

void npy_write_integers(FILE *stream, const size_t *shape, size_t axes, const int32_t *integers) {
    const size_t count = write_header(stream, "<i4", shape, axes);
    for (size_t i = 0; i < count; i++)
        write_little_endian(stream, (uint32_t)integers[i]);
}

void npy_write_labels(FILE *stream, const size_t *shape, size_t axes, const uint16_t *labels) {
    size_t count = 1;
    uint16_t largest = 0;
    for (size_t axis = 0; axis < axes; axis++)
        count *= shape[axis];
    for (size_t i = 0; i < count; i++)
        largest = labels[i] > largest ? labels[i] : largest;
    const size_t bytes = largest > UINT8_MAX ? 2 : 1;
    write_header(stream, bytes == 2 ? "<u2" : "|u1", shape, axes);
    npy_append_labels(stream, labels, count, bytes);
}
