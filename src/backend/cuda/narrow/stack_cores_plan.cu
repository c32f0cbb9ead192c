/* stack_cores_plan.cu: the host's side of stack_cores.cu: which programs it takes, where things
 * lie, its launches. */
#include "backend/cuda/narrow/stack_cores.h"

#include "backend/cuda/plan/kernel_row.h"

enum { CORES_OUT_MOST = 32 }; /* of the last layer */

/* --- What a program is. */

static int32_t root_of(const struct program *program, int32_t tensor)
{
    return tensor < 0 ? -1 : program_root(program, tensor);
}

static struct cores_dense dense_of(const struct program *program, int32_t o)
{
    const struct op *op = &program->ops[o];
    const auto &attr = op->attr.dense_int8;
    const int32_t w = op_input(program, op, AT_dense_int8_w);
    struct cores_dense dense = {};
    dense.op = o;
    dense.w = w;
    dense.b = op_input(program, op, AT_dense_int8_b);
    dense.multiplier = op_input(program, op, AT_dense_int8_multiplier);
    dense.shift = op_input(program, op, AT_dense_int8_shift);
    dense.table = op_input(program, op, AT_dense_int8_table);
    dense.in = (int32_t)program->tensors[w].shape.dim[0];
    dense.out = (int32_t)program->tensors[w].shape.dim[1];
    dense.zero = attr.zero;
    dense.low = attr.low;
    dense.high = attr.high;
    return dense;
}

/* rows, load, quantise, dense layers, dequantise, store, each of what the one before made. */
static bool find_int8(const struct program *program, struct cores_find *find)
{
    int32_t made = -1, rows = -1;
    *find = {};
    find->load = find->store = find->quantise = find->dequantise = -1;
    for (int32_t o = 0; o < program->op_count; o++) {
        const struct op *op = &program->ops[o];
        const int32_t x = op->inputs ? op_input(program, op, 0) : -1;
        const bool follows = x >= 0 && root_of(program, x) == made;
        switch (op->kind) {
        case OP_rows:
            if (o != 0)
                return false;
            rows = op_output(program, op, 0);
            break;
        case OP_load:
            if (find->load >= 0 || x != rows)
                return false;
            find->load = o;
            break;
        case OP_quantise:
            if (!follows || find->quantise >= 0 || find->load < 0 ||
                program->ops[o - 1].kind != OP_load)
                return false;
            find->quantise = o;
            break;
        case OP_dense_int8:
            if (!follows || find->quantise < 0 || find->dequantise >= 0 ||
                find->layers == DENSE_STACK_MOST ||
                program->tensors[x].shape.dim[0] != program->batch ||
                program->tensors[op_input(program, op, AT_dense_int8_w)].role != ROLE_PARAM)
                return false;
            if (find->layers && find->layer[find->layers - 1].multiplier < 0)
                return false;
            find->layer[find->layers++] = dense_of(program, o);
            break;
        case OP_dequantise:
            if (!follows || !find->layers || find->dequantise >= 0)
                return false;
            find->dequantise = o;
            break;
        case OP_softmax:
            if (!follows || find->dequantise < 0 || find->softmax || find->store >= 0)
                return false;
            find->softmax = true;
            break;
        case OP_store:
            if (!follows || find->dequantise < 0 || find->store >= 0 ||
                op_input(program, op, AT_store_rows) != rows)
                return false;
            find->store = o;
            break;
        default: return false;
        }
        if (op->outputs)
            made = root_of(program, op_output(program, op, 0));
    }
    return find->store >= 0;
}

static bool find_16bit(const struct program *program, enum precision precision,
                       struct cores_find *find)
{
    const struct dense_stack *dense = program->stack;
    if (!dense || dense->optimiser >= 0 || dense->loss >= 0 || dense->right >= 0 ||
        dense->loss_grad >= 0 || dense->store_y < 0)
        return false;
    *find = {};
    find->number = precision == PRECISION_BF16 ? CORES_BF16 : CORES_FP16;
    find->layers = dense->layers;
    find->softmax = dense->probabilities;
    find->load = dense->load_x;
    find->store = dense->store_y;
    find->quantise = find->dequantise = -1;
    for (int32_t l = 0; l < dense->layers; l++) {
        const struct dense_stack_layer *from = &dense->layer[l];
        struct cores_dense *to = &find->layer[l];
        to->op = from->dense;
        to->w = from->w;
        to->b = from->b;
        to->multiplier = to->shift = to->table = -1;
        to->in = from->in;
        to->out = from->out;
        to->function = from->activation;
    }
    return true;
}

static bool find_layers(const struct device *device, const struct program *program,
                        struct cores_find *find)
{
    return precision_is_16bit(device->precision)
               ? find_16bit(program, device->precision, find)
               : device->precision == PRECISION_FP32 && find_int8(program, find);
}

/* --- Where things lie. */

static int32_t take_shared(int32_t *at, int64_t bytes)
{
    const int32_t place = *at;
    *at += (int32_t)((bytes + 15) / 16 * 16);
    return place;
}

/* Tiles that a block has of a layer, at most. */
static int32_t tiles_of(const struct cores_net *net, const struct cores_layer *layer)
{
    const int32_t others = net->blocks - 1;
    return (layer->tiles + others - 1) / others;
}

static int32_t place_layer(struct cores_layer *layer, enum cores_number number, int32_t tiles,
                           int32_t *at)
{
    const int64_t columns = (int64_t)tiles * CORES_TILE;
    const bool is_int8 = number == CORES_INT8;
    layer->channels_at =
        take_shared(at, columns * (is_int8 ? (int64_t)sizeof(struct int8_channel) : 4));
    layer->table_at = take_shared(at, is_int8 ? 256 : 0);
    layer->w_at = take_shared(at, (int64_t)(tiles - layer->far) * layer->pairs * 512);
    return *at;
}

/* Bytes that any block has. */
static int32_t place_all(struct cores_net *net, enum cores_number number)
{
    int32_t at = 0, end;
    take_shared(&at, (int64_t)net->batch * net->pitch);
    net->sums_at =
        take_shared(&at, (int64_t)CORES_WARPS * CORES_TILES * net->batch * CORES_TILE * 4);
    end = at;
    for (int32_t l = 0; l < net->layers - 1; l++)
        place_layer(&net->layer[l], number, tiles_of(net, &net->layer[l]), &at);
    struct cores_layer *last = &net->layer[net->layers - 1];
    place_layer(last, number, last->tiles, &end);
    net->heard_at = take_shared(&end, (int64_t)net->batch * net->layer[0].in * 4);
    net->finals_at = take_shared(&end, (int64_t)net->batch * last->out * 4);
    return at > end ? at : end;
}

/* One more layer has a tile less in shared memory: the one that fits best. False: none can. */
static bool keep_less(struct cores_net *net)
{
    struct cores_layer *best = NULL;
    for (int32_t l = 0; l < net->layers - 1; l++) {
        struct cores_layer *layer = &net->layer[l];
        const int32_t rounds = (layer->pairs + CORES_WARPS - 1) / CORES_WARPS;
        if (layer->far == tiles_of(net, layer) || (layer->far + 1) * rounds > CORES_FAR)
            continue;
        if (!best || layer->far < best->far ||
            (layer->far == best->far && layer->pairs < best->pairs))
            best = layer;
    }
    if (best)
        best->far++;
    return best;
}

/* Sizes and places; NULL, or why there is no room. */
static const char *lay_out(const struct device *device, const struct cores_find *find,
                           int32_t batch, struct cores_net *net)
{
    const int32_t bytes = find->number == CORES_INT8 ? 1 : 2;
    const int32_t shared = (int32_t)device->properties.sharedMemPerBlockOptin - 2048;
    int32_t deepest = 0, others = device->properties.multiProcessorCount - 1;
    if (device->properties.major < 9)
        return "few samples in 8 and 16 bits have a kernel for whole steps from Hopper on";
    if (batch > CORES_BATCH_MOST)
        return "its batch is more than 16 samples";
    if (find->layers < 2)
        return "it has one layer";
    if (find->layer[find->layers - 1].out > CORES_OUT_MOST)
        return "its last layer has more than 32 outputs";
    net->number = find->number;
    net->batch = batch;
    net->layers = find->layers;
    net->softmax = find->softmax;
    for (int32_t l = 0; l < find->layers; l++) {
        struct cores_layer *layer = &net->layer[l];
        layer->in = find->layer[l].in;
        layer->out = find->layer[l].out;
        layer->tiles = (layer->out + CORES_TILE - 1) / CORES_TILE;
        layer->pairs = (int32_t)(((int64_t)layer->in * bytes + CORES_PAIR - 1) / CORES_PAIR);
        deepest = layer->pairs > deepest ? layer->pairs : deepest;
        if (l < find->layers - 1 && layer->tiles < others)
            others = layer->tiles; /* each block has a tile of every layer */
    }
    net->blocks = others + 1;
    net->pitch = (deepest * CORES_PAIR + 127) / 128 * 128 + 32; /* rows lie in different banks */
    for (int32_t l = 0; l < find->layers - 1; l++)
        if (tiles_of(net, &net->layer[l]) > CORES_TILES)
            return "a layer is wider than the multiprocessors' shares";
    if (deepest > 1 << 12)
        return "a layer has too many inputs";
    while ((net->bytes = place_all(net, find->number)) > shared)
        if (!keep_less(net))
            return "it does not fit the multiprocessors' shared memory";
    return NULL;
}

static int32_t packets_of(enum cores_number number, int32_t features)
{
    const int32_t some = number == CORES_INT8 ? 8 : 4;
    return (features + some - 1) / some;
}

/* Device memory: numbers, packets, packed weights; `base` NULL: only counted. */
static uint64_t place_memory(struct cores_net *net, enum cores_number number, char *base)
{
    uint64_t count = 1;
    uint4 *pieces = (uint4 *)base;
    net->turn = (uint32_t *)base;
    net->came = net->turn + 1;
    net->x = pieces + count;
    count += 2 * (1 + (uint64_t)net->batch * (uint64_t)packets_of(number, net->layer[0].in));
    for (int32_t l = 0; l < net->layers; l++) {
        struct cores_layer *layer = &net->layer[l];
        layer->y = pieces + count;
        count += 2 * (uint64_t)net->batch * (uint64_t)packets_of(number, layer->out);
        layer->w = pieces + count;
        count += (uint64_t)layer->tiles * (uint64_t)layer->pairs * 32;
    }
    return count * sizeof(uint4);
}

/* --- Plans. */

/* NULL: it is run so. */
static const char *why_not(const struct device *device, const struct program *program,
                           struct cores_find *find, struct cores_net *net)
{
    *net = {};
    if (device->fp8)
        return "whole steps are not computed in fp8";
    if (!find_layers(device, program, find))
        return precision_is_16bit(device->precision)
                   ? "whole steps in 16 bits are for inference by a stack of dense layers"
                   : "it is not a plain stack of dense layers";
    return lay_out(device, find, program->batch, net);
}

bool takes_stack_cores(const struct choice *choice)
{
    struct cores_find find;
    struct cores_net net;
    return choice->device && !why_not(choice->device, choice->program, &find, &net) &&
           (choice->answering != ANSWER_RESIDENT ||
            net.batch * net.layer[0].in <= CORES_NOTES_MOST);
}

const char *cores_why_none(const struct device *device, const struct program *program)
{
    struct cores_find find;
    struct cores_net net;
    const char *why = device ? why_not(device, program, &find, &net) : NULL;
    return why ? why : "it is not a plain stack of dense layers";
}

static struct cores_net *net_of(const struct stack *stack)
{
    static_assert(sizeof(struct cores_net) <= STACK_NET_BYTES - 64, "a kernel's parameters");
    return (struct cores_net *)stack->net;
}

static struct cores_find find_of(const struct plan *plan)
{
    struct cores_find find;
    (void)find_layers(plan->instance->device, plan->program, &find);
    return find;
}

static void cores_choose(struct plan *plan)
{
    const struct cores_find find = find_of(plan);
    struct cores_net *net = net_of(plan->stack);
    (void)lay_out(plan->instance->device, &find, plan->program->batch, net);
    plan->stack->bytes = place_memory(net, find.number, NULL);
}

static void describe_ends(const struct plan *plan, const struct cores_find *find,
                          struct cores_net *net)
{
    const struct program *program = plan->program;
    const struct op *load = &program->ops[find->load], *store = &program->ops[find->store];
    net->feed = plan->feed;
    net->view_x = &plan->views[op_output(program, load, 0)];
    net->view_y = &plan->views[op_input(program, store, AT_store_x)];
    if (find->quantise < 0)
        return;
    const auto &quantise = program->ops[find->quantise].attr.quantise;
    const struct op *dequantise = &program->ops[find->dequantise];
    net->scale = quantise.scale;
    net->zero = quantise.zero;
    net->low = quantise.low - quantise.zero;
    net->high = quantise.high - quantise.zero;
    net->scale_y = dequantise->attr.dequantise.scale;
    net->zero_y = dequantise->attr.dequantise.zero;
    net->scales_y =
        (const float *)cuda_locate(plan, op_input(program, dequantise, AT_dequantise_scale), 0);
}

static enum status cores_begin(struct plan *plan)
{
    struct stack *stack = plan->stack;
    struct cores_net *net = net_of(plan->stack);
    const struct cores_find find = find_of(plan);
    void *memory;
    if (stack->memory)
        return STATUS_OK;
    TRY(cuda_alloc(plan->instance->device, stack->bytes, "the whole step's kernel", &memory));
    stack->memory = (char *)memory;
    place_memory(net, find.number, stack->memory);
    describe_ends(plan, &find, net);
    for (int32_t l = 0; l < find.layers; l++) {
        const struct cores_dense *from = &find.layer[l];
        struct cores_layer *to = &net->layer[l];
        to->function = from->function;
        if (find.number != CORES_INT8) {
            to->b = (const float *)cuda_locate(plan, from->b, 0);
            continue;
        }
        to->ending = {(const int32_t *)cuda_locate(plan, from->b, 0),
                      (const int32_t *)cuda_locate(plan, from->multiplier, 0),
                      (const int32_t *)cuda_locate(plan, from->shift, 0),
                      (const uint8_t *)cuda_locate(plan, from->table, 0),
                      from->zero,
                      from->low,
                      from->high};
    }
    return STATUS_OK;
}

enum status cores_refresh(struct plan *plan)
{
    struct stack *stack = plan->stack;
    const struct instance *instance = plan->instance;
    const struct cores_net *net = net_of(plan->stack);
    if (stack->version == instance->version)
        return STATUS_OK;
    const struct cores_find find = find_of(plan);
    for (int32_t l = 0; l < find.layers; l++) {
        const struct tensor *w = &plan->program->tensors[find.layer[l].w];
        const struct cores_layer *layer = &net->layer[l];
        const void *from = find.number == CORES_INT8 ? cuda_locate(plan, find.layer[l].w, 0)
                                                     : mixed_copy(plan->mixed, w).data;
        CUDA(cores_pack(from, layer->in, layer->out, find.number == CORES_INT8 ? 1 : 2,
                        layer->tiles, layer->pairs, (uint4 *)layer->w, instance->device->stream));
    }
    stack->version = instance->version;
    return STATUS_OK;
}

static enum status cores_steps(struct plan *plan, int64_t steps)
{
    const int64_t STEPS_MOST = 1 << 16; /* of a launch: nobody waits for seconds to stop it */
    TRY(cores_refresh(plan));
    for (int64_t left = steps; left > 0; left -= STEPS_MOST)
        CUDA(cores_launch(net_of(plan->stack), CORES_STEPS, left < STEPS_MOST ? left : STEPS_MOST,
                          plan->instance->device->stream));
    return STATUS_OK;
}

extern const struct stack_kernel steps_by_cores = {NULL,         NULL,        NULL,
                                                   cores_choose, cores_begin, cores_steps};

/* --- Calls. */

bool cores_can_listen(const struct stack *stack)
{
    const struct cores_net *net = net_of(stack);
    return net->batch * net->layer[0].in <= CORES_NOTES_MOST;
}

struct answer_net cores_sizes(const struct stack *stack)
{
    const struct cores_net *net = net_of(stack);
    struct answer_net sizes = {};
    sizes.batch = net->batch;
    sizes.layers = net->layers;
    for (int32_t l = 0; l < net->layers; l++) {
        sizes.layer[l].in = net->layer[l].in;
        sizes.layer[l].out = net->layer[l].out;
    }
    sizes.mail.inputs = net->batch * net->layer[0].in;
    sizes.mail.outputs = net->batch * net->layer[net->layers - 1].out;
    return sizes;
}

int32_t cores_first_op(const struct plan *plan)
{
    return find_of(plan).layer[0].op;
}

void cores_listen(struct stack *stack, const struct mailbox *mail)
{
    net_of(stack)->mail = *mail;
}

static cudaError_t launch_calls(struct answer *answer, uint32_t first, bool stays,
                                cudaStream_t stream)
{
    return cores_launch(net_of(answer->stack), stays ? CORES_CALLS : CORES_CALL, first, stream);
}

extern const struct answer_kernel calls_by_cores = {false, NULL, launch_calls, NULL};
