/* iris.c: a network that tells three irises apart, trained through the library in 30 lines.
 *     cc iris.c -o iris $(pkg-config --cflags --libs prony) && ./iris iris.csv */
#include <prony.h>
#include <stdio.h>
#include <string.h>

enum { ROWS = 150, COLUMNS = 4, CLASSES = 3, BATCH = 10, STEPS = 3000 };

int main(int argc, char **argv)
{
    static const char *const names[CLASSES] = {"setosa", "versicolor", "virginica"};
    float flowers[ROWS][COLUMNS], chances[ROWS][CLASSES], loss;
    int32_t classes[ROWS] = {0}, right = 0, failed;
    char name[32];
    FILE *file = fopen(argc > 1 ? argv[1] : "iris.csv", "r");
    if (!file || fscanf(file, "%*[^\n]") < 0) /* the header */
        return perror("iris.csv"), 1;
    for (int i = 0; i < ROWS; i++) {
        int row = i * 37 % ROWS; /* mixed: the file has one class after the other */
        float *x = flowers[row];
        if (fscanf(file, "%f,%f,%f,%f,%31s", &x[0], &x[1], &x[2], &x[3], name) != 5)
            return fprintf(stderr, "row %d is not four numbers and a name\n", i + 1), 1;
        while (classes[row] < CLASSES - 1 && strcmp(name, names[classes[row]]))
            classes[row]++;
    }
    fclose(file);

    struct prony *network;
    failed = prony_open("mlp:4-16-3:tanh", &(struct prony_options){.classes = CLASSES}, &network);
    for (int step = 0; step < STEPS && !failed; step++) {
        int first = step * BATCH % ROWS;
        failed = prony_train_classes(network, BATCH, flowers[first], &classes[first], &loss);
    }
    if (failed || prony_predict(network, ROWS, flowers[0], chances[0]) ||
        prony_save(network, "iris.safetensors"))
        return fprintf(stderr, "%s\n", prony_error()), 1;
    for (int i = 0; i < ROWS; i++) {
        const float *p = chances[i];
        right += classes[i] == (p[0] > p[1] && p[0] > p[2] ? 0 : p[1] > p[2] ? 1 : 2);
    }
    printf("loss %.4f, %d of %d right\n", (double)loss, right, ROWS);
    prony_close(network);
}
