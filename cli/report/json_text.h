/* Strings for JSON, which is UTF-8, from file names, which may not be. */
#ifndef DCRF_CLI_REPORT_JSON_TEXT_H
#define DCRF_CLI_REPORT_JSON_TEXT_H

#include <jansson.h>

/* The text; if it is not UTF-8, as printable.h shows it. NULL: out of memory. */
json_t *json_text(const char *text);

#endif
