/* test_zoo.c: the networks of the zoo have exactly the parameters that others count for them. */
#include "check.h"
#include "nn/network.h"

static const struct {
    const char *name;
    int64_t parameters;
} zoo[] = {
    {"small", 62},       {"large", 12337201}, {"fcn", 10020874},
    {"wide", 201355264}, {"lenet", 61706},    {"lstm", 332298},
};

TEST(parameters_are_as_many_as_published)
{
    for (size_t i = 0; i < sizeof zoo / sizeof *zoo; i++) {
        struct network *network = NULL;
        struct program *program = NULL;
        struct params params;
        struct compile_options options = {.batch = 3, .use = USE_TRAINING};
        params_init(&params, DTYPE_F32);
        params.bare = true; /* counting takes no memory */
        if (CHECK_OK(network_open(zoo[i].name, &network)) &&
            CHECK_OK(network_compile(network, &params, &options, &program)))
            CHECK_EQUAL_INT(params_count(&params), zoo[i].parameters);
        program_free(program);
        params_free(&params);
        network_free(network);
    }
}

CHECK_MAIN
