/* Software without settings: what older records mixed is told apart when they are read. */
#include "check.h"
#include "record/record.h"
#include "record/software.h"

TEST(settings_leave_the_software)
{
    static const struct {
        const char *backend, *unit_name, *text, *software, *tuning, *unit;
    } rows[] = {
        {"default", "AMD EPYC", "python 3.11.2, numpy 1.24.2, weights [in][out]",
         "python 3.11.2, numpy 1.24.2", "weights [in][out]", "AMD EPYC"},
        {"eager", "AMD EPYC",
         "python 3.11.2, torch 1.13.0, backend eager, settings images NCHW, weights [out][in], "
         "mkldnn on, update usual, jit off",
         "python 3.11.2, torch 1.13.0",
         "images NCHW, weights [out][in], mkldnn on, update usual, jit off", "AMD EPYC"},
        {"graph", "NVIDIA H200",
         "python 3.12.3, torch 2.11.0, cuda 13.0, gpu NVIDIA H200, backend graph, settings weights "
         "[out][in]",
         "python 3.12.3, torch 2.11.0, cuda 13.0", "weights [out][in]", "NVIDIA H200"},
        {"default", "", "python 3.12.3, torch 2.11.0, gpu NVIDIA H200, backend graph",
         "python 3.12.3, torch 2.11.0", "backend graph", "NVIDIA H200"},
        {"default", "", "python 3.12.3, jax 0.11.2, unit NVIDIA H200, steps scan",
         "python 3.12.3, jax 0.11.2", "steps scan", "NVIDIA H200"},
        {"default", "", "openblas libopenblas.so.0, blis libblis.so.4, library blis",
         "openblas libopenblas.so.0, blis libblis.so.4", "library blis", ""},
        {"default", "", "python 3.11.2, onednn 2.6.3, avx512_core, blas OpenBLAS 0.3.21, ZEN",
         "python 3.11.2, onednn 2.6.3, avx512_core, blas OpenBLAS 0.3.21, ZEN", "", ""},
        {"default", "", "blas OpenBLAS 0.3.21, ZEN, 2 threads", "blas OpenBLAS 0.3.21, ZEN", "",
         ""},
        {"default", "", "blas OpenBLAS 0.3.21, 1 thread", "blas OpenBLAS 0.3.21, 1 thread", "", ""},
        {"default", "", "settings ", "", "", ""},
        {"default", "", "", "", "", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct point point;
        memset(&point, 0, sizeof point);
        point.threads = 2;
        CHECK_OK(point_set(&point, &axes[AXIS_backend], rows[i].backend));
        CHECK_OK(point_set(&point, &axes[AXIS_unit_name], rows[i].unit_name));
        CHECK_OK(point_set(&point, &axes[AXIS_software], rows[i].text));
        software_split(&point);
        CHECK_EQUAL_TEXT(point.software, rows[i].software);
        CHECK_EQUAL_TEXT(point.tuning, rows[i].tuning);
        CHECK_EQUAL_TEXT(point.unit_name, rows[i].unit);
    }
}

TEST(reading_tells_them_apart)
{
    static const char peer[] = "{\"prony\":1,\"kind\":\"result\",\"status\":\"skipped\",\"point\":{"
                               "\"framework\":\"numpy\",\"software\":\"numpy 1, weights x\"}}";
    static const char ours[] = "{\"prony\":1,\"kind\":\"result\",\"status\":\"skipped\",\"point\":{"
                               "\"framework\":\"prony\",\"software\":\"prony 1, weights x\"}}";
    struct arena arena = {0};
    struct record record;
    if (CHECK_OK(record_read(&arena, "test", 1, peer, sizeof peer - 1, &record))) {
        CHECK_EQUAL_TEXT(record.point.software, "numpy 1");
        CHECK_EQUAL_TEXT(record.point.tuning, "weights x");
    }
    if (CHECK_OK(record_read(&arena, "test", 1, ours, sizeof ours - 1, &record)))
        CHECK_EQUAL_TEXT(record.point.software, "prony 1, weights x");
    arena_free(&arena);
}

TEST(a_blas_goes_by_its_name)
{
    static const char text[] = "{\"numpy\":\"1.24.2\",\"blas\":\"OpenBLAS 0.3.21, ZEN\"}",
                      poor[] = "{\"blas\":\"reference (libblas.so.3)\"}";
    struct arena arena = {0};
    struct json *tree;
    char field[POINT_TEXT] = "";
    if (CHECK_OK(json_parse(&arena, "test", text, sizeof text - 1, &tree)))
        software_add(field, tree);
    CHECK_EQUAL_TEXT(field, "numpy 1.24.2, OpenBLAS 0.3.21, ZEN");
    field[0] = '\0';
    if (CHECK_OK(json_parse(&arena, "test", poor, sizeof poor - 1, &tree)))
        software_add(field, tree);
    CHECK_EQUAL_TEXT(field, "blas reference (libblas.so.3)");
    arena_free(&arena);
}

TEST(members_are_added_as_far_as_they_fit)
{
    static const char text[] = "{\"weights\":\"[in][out]\",\"tries\":3,\"jit\":\"off\"}";
    struct arena arena = {0};
    struct json *tree;
    char field[POINT_TEXT] = "";
    if (CHECK_OK(json_parse(&arena, "test", text, sizeof text - 1, &tree))) {
        software_add(field, tree);
        CHECK_EQUAL_TEXT(field, "weights [in][out], jit off");
        for (int i = 0; i < 30; i++)
            software_add(field, tree);
        CHECK_EQUAL_INT(strlen(field), POINT_TEXT - 1);
    }
    software_add(field, NULL);
    arena_free(&arena);
}

CHECK_MAIN
