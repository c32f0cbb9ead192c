/* kernel_list.cu: the list of kernels (kernel_list.def), and how it is searched: the first row that
 * fits and takes wins. */
#include "backend/cuda/host/cuda_device.h"
#include "backend/cuda/plan/kernel_families.h"
#include "backend/cuda/plan/kernel_row.h"

enum : unsigned { IN_32BIT = IN_FP32 | IN_TF32, NOT_IN_FP32 = IN_ALL & ~IN_FP32 };

#define NONE NULL
#define ENTRY(...) {__VA_ARGS__},
#define ROW(kind, name, precisions, traits, takes, launch, workspace, why)                         \
    ENTRY(name, why, precisions, traits, 1, {OP_##kind}, 0, 0, takes, launch, workspace, NULL, 0)
#define SGD_ROW(name, precisions, traits, takes, launch, workspace, side_bytes, why)               \
    ENTRY(name, why, precisions, traits, 1, {OP_dense_sgd}, 0, 0, takes, launch, workspace,        \
          side_bytes, SIDE_DENSE_SGD)
#define FUSED(name, traits, takes, launch, workspace, side, why, home, count, ...)                 \
    ENTRY(name, why, IN_ALL, traits, count, {__VA_ARGS__}, home, 0, takes, launch, workspace,      \
          NULL, side)
#define GROUP(name, kind, workspace)                                                               \
    ENTRY(name, NULL, IN_32BIT, 0, 1, {OP_##kind}, 0, MULTI_TENSOR_MOST, takes_multi_tensor,       \
          launch_multi_tensor, workspace, NULL, 0)
#define STEPS(name, precisions, traits, takes, kernel, why)                                        \
    ENTRY(name, why, precisions, traits, 0, {}, 0, 0, takes, NULL, NULL, NULL, 0, &kernel)
#define CALLS(name, precisions, traits, takes, kernel, why)                                        \
    ENTRY(name, why, precisions, traits, 0, {}, 0, 0, takes, NULL, NULL, NULL, 0, NULL, &kernel)

static const struct kernel kernels[] = {
#include "backend/cuda/plan/kernel_list.def"
};

/* Is the row among those that must not be taken, so that others can be compared with it? Names
 * with commas between (tests/gpu/kernel_worth.c). */
static bool row_is_left_out(const struct kernel *row)
{
    const char *names = getenv("PRONY_CUDA_WITHOUT");
    const size_t length = strlen(row->name);
    for (; names && *names; names += strcspn(names, ","), names += *names == ',')
        if (strcspn(names, ",") == length && strncmp(names, row->name, length) == 0)
            return true;
    return false;
}

/* Do the row's ops follow each other here, in one part? */
static bool row_fits(const struct kernel *row, const struct choice *choice)
{
    const struct program *program = choice->program;
    if (!row->op_count || choice->op + row->op_count > program->ops + program->op_count)
        return false;
    for (int32_t i = 0; i < row->op_count; i++)
        if (choice->op[i].kind != row->ops[i] || choice->op[i].part != choice->op->part)
            return false;
    return true;
}

static bool row_takes(const struct kernel *row, const struct choice *choice)
{
    const enum precision precision = choice->device ? choice->device->precision : PRECISION_FP32;
    return (row->precisions >> precision & 1) && (!row->takes || row->takes(choice)) &&
           !row_is_left_out(row);
}

const struct kernel *kernel_find(const struct choice *choice, bool fuses)
{
    for (const struct kernel &row : kernels)
        if (row_fits(&row, choice) && (fuses || (row.op_count == 1 && !row.group)) &&
            row_takes(&row, choice))
            return &row;
    return NULL;
}

/* Is there what the row needs of a whole program? */
static bool row_reads(const struct kernel *row, const struct choice *choice)
{
    return choice->program->stack || (row->traits & KERNEL_FINDS);
}

const struct kernel *kernel_find_steps(const struct choice *choice)
{
    for (const struct kernel &row : kernels)
        if (row.steps && row_reads(&row, choice) && row_takes(&row, choice))
            return &row;
    return NULL;
}

const struct kernel *kernel_find_calls(const struct choice *choice)
{
    for (const struct kernel &row : kernels)
        if (row.calls && row_reads(&row, choice) && row_takes(&row, choice))
            return &row;
    return NULL;
}

bool kernel_has(enum op_kind kind)
{
    for (const struct kernel &row : kernels)
        if (row.op_count == 1 && row.ops[0] == kind && !row.takes)
            return true;
    return false;
}
