/* iris.c: a network that tells three irises apart, trained through the library in 30 lines.
 *     cc iris.c -o iris $(pkg-config --cflags --libs prony) && ./iris */
#include <prony.h>
#include <stdio.h>

static int train(struct prony *network, struct prony_data *iris)
{
    const float flower[] = {6.1f, 2.9f, 4.7f, 1.4f};
    float chances[3];
    struct prony_progress progress = {0};
    struct prony_score test;
    int failed = prony_begin(network, iris, &(struct prony_course){.epochs = 100, .test = 0.2});
    while (!failed && !progress.finished)
        failed = prony_run(network, 1000, &progress);
    if (failed || prony_end(network, &test) || prony_save(network, "iris.safetensors") ||
        prony_predict(network, 1, flower, chances))
        return 1;
    printf("loss %.4f, %.0f %% right in the test\n", progress.last.loss, 100 * test.accuracy);
    for (int i = 0; i < 3; i++)
        printf("%-10s %.2f\n", prony_class(network, i), (double)chances[i]);
    return 0;
}

int main(void)
{
    struct prony *network = NULL;
    struct prony_data *iris = NULL;
    int failed = prony_open("mlp:4-16-3", NULL, &network) || prony_data_open("iris", NULL, &iris) ||
                 train(network, iris);
    if (failed)
        fprintf(stderr, "%s\n", prony_error());
    prony_close(network);
    prony_data_close(iris);
    return failed;
}
