/* layer_image.c: see layer_image.h. */
#include "nn/layers/layer_image.h"

/* A place in an image is an int32_t, and so are the attributes of ops. */
bool image_input(struct layer_emit *emit, struct shape *out)
{
    *out = *draft_shape(emit->draft, emit->inputs[0]);
    if (out->rank != 4)
        draft_fail(emit->draft, STATUS_INPUT,
                   "%s: its input has %d dimensions, expected the 3 of an image: channels, height, "
                   "width",
                   emit->layer->name, out->rank - 1);
    else if (out->dim[2] > INT32_MAX / out->dim[3])
        draft_fail(emit->draft, STATUS_INPUT,
                   "%s: its input is an image of %lldx%lld, expected at most %d pixels",
                   emit->layer->name, (long long)out->dim[2], (long long)out->dim[3], INT32_MAX);
    return emit->draft->status == STATUS_OK;
}

bool image_pair(struct layer_emit *emit, int argument, const char *name, int64_t least,
                struct pair *out)
{
    const struct layer_list *list = &emit->layer->lists[argument];
    *out = (struct pair){list->items[0], list->items[list->count - 1]};
    if (list->count > 2)
        draft_fail(emit->draft, STATUS_INPUT, "%s: %s has %d sizes, expected one or two",
                   emit->layer->name, name, list->count);
    else if (out->h < least || out->w < least)
        draft_fail(emit->draft, STATUS_INPUT, "%s: %s is %lldx%lld, expected %lld or more",
                   emit->layer->name, name, (long long)out->h, (long long)out->w, (long long)least);
    return emit->draft->status == STATUS_OK;
}

struct pair image_extent(const struct slide *slide)
{
    return (struct pair){
        .h = (slide->window.h - 1) * slide->dilation.h + 1,
        .w = (slide->window.w - 1) * slide->dilation.w + 1,
    };
}

/* Along one axis, of `size` places and the pad on either side. */
static int64_t count_places(int64_t size, int64_t pad, int64_t extent, int64_t stride, bool ceil)
{
    int64_t room = size + 2 * pad - extent;
    int64_t places = (room + (ceil ? stride - 1 : 0)) / stride + 1;
    return ceil && (places - 1) * stride >= size + pad ? places - 1 : places;
}

bool image_places(struct layer_emit *emit, const struct shape *image, const struct slide *slide,
                  struct pair *out)
{
    struct pair extent = image_extent(slide);
    struct pair padded = {image->dim[2] + 2 * slide->pad.h, image->dim[3] + 2 * slide->pad.w};
    if (extent.h > padded.h || extent.w > padded.w) {
        draft_fail(emit->draft, STATUS_INPUT,
                   "%s: its window covers %lldx%lld, expected at most the %lldx%lld of its padded "
                   "input",
                   emit->layer->name, (long long)extent.h, (long long)extent.w, (long long)padded.h,
                   (long long)padded.w);
        return false;
    }
    *out = (struct pair){
        .h = count_places(image->dim[2], slide->pad.h, extent.h, slide->stride.h, slide->ceil),
        .w = count_places(image->dim[3], slide->pad.w, extent.w, slide->stride.w, slide->ceil),
    };
    return true;
}
