/* requests.c: predictions one by one, and as a stream with several of them in flight.
 *     cc requests.c -o requests $(pkg-config --cflags --libs prony) && ./requests */
#include <prony.h>
#include <stdio.h>

enum { REQUESTS = 1000, DEPTH = 16, INPUTS = 4 };

static int ask(struct prony *network, struct prony_stream *stream)
{
    static float outputs[REQUESTS];
    uint64_t ticket = 0;
    float alone;
    for (int i = 0; i < REQUESTS; i++) {
        const float inputs[INPUTS] = {(float)i / REQUESTS, 0.5f, 0.25f, 1};
        if (i >= DEPTH && prony_stream_wait(stream, ticket - DEPTH + 1)) /* the oldest in flight */
            return 1;
        if (prony_stream_submit(stream, inputs, &outputs[i], &ticket)) /* inputs may go now */
            return 1;
    }
    if (prony_stream_wait(stream, ticket) || /* all before it are answered, too */
        prony_predict(network, 1, (const float[INPUTS]){0, 0.5f, 0.25f, 1}, &alone))
        return 1;
    printf("%d answers; the first is %s by itself\n", REQUESTS,
           alone == outputs[0] ? "the same" : "another");
    return 0;
}

int main(void)
{
    const struct prony_stream_options options = {.depth = DEPTH};
    struct prony *network = NULL;
    struct prony_stream *stream = NULL;
    int failed = prony_open("mlp:4-16-1", NULL, &network) ||
                 prony_stream_open(network, &options, &stream) || ask(network, stream);
    if (failed)
        fprintf(stderr, "%s\n", prony_error());
    prony_stream_close(stream);
    prony_close(network);
    return failed;
}
