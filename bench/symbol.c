/* Reads the symbol table of the running program (ELF, 64 bits). The table has addresses relative to
 * where the program was loaded, which one known function tells. */
#include "symbol.h"

#ifdef __linux__
#include "measure.h"

#include <elf.h>
#include <stdint.h>
#include <string.h>

static char *read_program(void) {
    FILE *file = fopen("/proc/self/exe", "rb");
    if (!file || fseek(file, 0, SEEK_END) != 0)
        return NULL;
    const size_t bytes = (size_t)ftell(file);
    char *program = require(malloc(bytes));
    rewind(file);
    if (fread(program, 1, bytes, file) != bytes) {
        free(program);
        program = NULL;
    }
    fclose(file);
    return program;
}

static const Elf64_Shdr *find_symbols(const char *program) {
    const Elf64_Ehdr *head = (const void *)program;
    const Elf64_Shdr *sections = (const void *)(program + head->e_shoff);
    if (memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 || head->e_ident[EI_CLASS] != ELFCLASS64)
        return NULL;
    for (size_t i = 0; i < head->e_shnum; i++)
        if (sections[i].sh_type == SHT_SYMTAB)
            return &sections[i];
    return NULL;
}

/* The name of the function at `address`; or, with a name given, its address in *address. */
static const char *look_up(const char *program, const char *name, uint64_t *address) {
    const Elf64_Shdr *section = program ? find_symbols(program) : NULL;
    if (!section)
        return NULL;
    const Elf64_Shdr *sections = (const void *)(program + ((const Elf64_Ehdr *)program)->e_shoff);
    const char *names = program + sections[section->sh_link].sh_offset;
    const Elf64_Sym *symbols = (const void *)(program + section->sh_offset);
    for (size_t i = 0; i < section->sh_size / sizeof *symbols; i++) {
        if (ELF64_ST_TYPE(symbols[i].st_info) != STT_FUNC)
            continue;
        const char *own = names + symbols[i].st_name;
        if (name ? strcmp(own, name) == 0 : symbols[i].st_value == *address) {
            *address = symbols[i].st_value;
            return own;
        }
    }
    return NULL;
}

const char *symbol_name(void (*function)(void)) {
    static const char *program;
    static uint64_t base;
    if (!program) {
        uint64_t own = 0;
        program = read_program();
        if (look_up(program, "symbol_name", &own))
            base = (uint64_t)(uintptr_t)symbol_name - own;
    }
    uint64_t address = (uint64_t)(uintptr_t)function - base;
    const char *name = look_up(program, NULL, &address);
    return name ? name : "?";
}
#else
const char *symbol_name(void (*function)(void)) {
    (void)function;
    return "?";
}
#endif
