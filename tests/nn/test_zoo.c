/* test_zoo.c: the networks of the zoo have exactly the parameters that others count for them. */
#include "check.h"
#include "nn/network.h"

static const struct {
    const char *name;
    int64_t parameters;
} zoo[] = {
    {"small", 62},
    {"large", 12337201},
    {"fcn", 10020874},
    {"wide", 201355264},
    {"lenet", 61706},
    {"grey512", 18666},
    {"lstm", 332298},
    {"fcn_s", 117997696},
    {"fcn_r", 14205962},
    {"deep_mnist", 11972510},
    {"acoustic", 34678784},
    {"sensor_net", 2919440},
    {"jet_tagger", 4389},
    {"ad_autoencoder", 267928},
    {"ptb_lstm", 19780400},
    {"alexnet", 62378344},
    {"alexnet_owt", 61100840},
    {"googlenet", 6998552},
    {"inception3", 23834568},
    {"vgg11", 132863336},
    {"vgg13", 133047848},
    {"vgg16", 138357544},
    {"vgg19", 143667240},
    {"resnet18", 11689512},
    {"resnet34", 21797672},
    {"resnet50", 25557032},
    {"resnet101", 44549160},
    {"resnet152", 60192808},
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
            if (!CHECK_EQUAL_INT(params_count(&params), zoo[i].parameters))
                fprintf(stderr, "    %s\n", zoo[i].name);
        program_free(program);
        params_free(&params);
        network_free(network);
    }
}

CHECK_MAIN
