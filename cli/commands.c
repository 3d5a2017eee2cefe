/* The table of subcommands. */
#include "args/file_options.h"
#include "command.h"
#include "ranks/ranks.h"

#include <stdlib.h>
#include <string.h>

extern const cli_command batch_command;
extern const cli_command certify_command;
extern const cli_command completion_command;
extern const cli_command devices_command;
extern const cli_command energy_command;
extern const cli_command filter_command;
extern const cli_command presets_command;
extern const cli_command superpixels_command;
extern const cli_command tune_command;
extern const cli_command verify_command;

const cli_command *const commands[] = {
    &batch_command,       &certify_command, &completion_command, &devices_command,
    &energy_command,      &filter_command,  &presets_command,    &solve_command,
    &superpixels_command, &tune_command,    &verify_command,
};
const size_t command_count = sizeof commands / sizeof commands[0];

const cli_command *find_command(const char *name) {
    for (size_t i = 0; i < command_count; i++)
        if (strcmp(commands[i]->arguments.command, name) == 0)
            return commands[i];
    return NULL;
}

/* Data sets and tiles are shared among ranks (ranks/ranks.h). Rank 0 does everything else while
 * the others wait. */
static bool is_for_all_ranks(const cli_command *command) {
    return command == &batch_command || command == &solve_command || command == &tune_command;
}

bool run_command(const cli_command *command, int count, char **arguments, cli_problem *problem) {
    bool help = false;
    void *settings = calloc(1, command->settings_bytes);
    if (!settings)
        return out_of_memory(problem, command->arguments.command);
    option_record record;
    bool done =
        parse_arguments(&command->arguments, count, arguments, settings, &record, &help, problem) &&
        file_options_check(&record, problem);
    /* If one rank cannot read its arguments, all ranks must fail together. */
    done = ranks_agree(done, problem);
    const bool takes_part = ranks_mine() == 0 || is_for_all_ranks(command);
    if (done && help)
        print_command_help(stdout, command);
    else if (done && takes_part)
        done = command->run(settings, problem);
    if (!done && record.config)
        problem_of_config(&record, problem);
    option_record_free(&record);
    free(settings);
    return done;
}
