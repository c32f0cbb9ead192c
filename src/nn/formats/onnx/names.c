/* names.c: the texts of a file, which are anybody's: a byte 0 in one would end it early, as another
 * name, and what a terminal obeys must not reach it. See importer.h. */
#include "nn/formats/onnx/importer.h"

#include <string.h>

enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

/* Protobuf's numbers: seven bits to a byte, the lowest first. False: the message ends before. */
static bool take_number(const uint8_t **at, const uint8_t *end, uint64_t *out)
{
    *out = 0;
    for (unsigned shift = 0; *at < end && shift < 64; shift += 7) {
        *out |= (uint64_t)(**at & 127) << shift;
        if (!(*(*at)++ & 128))
            return true;
    }
    return false;
}

/* Protobuf-c ends texts with a 0 and does not keep how long they were: the bytes are looked at, as
 * deep as messages lie in each other, of which none holds its own kind. */
bool names_are_whole(const ProtobufCMessageDescriptor *type, const uint8_t *at, size_t length)
{
    const uint8_t *end = at + length;
    uint64_t tag, size;
    while (take_number(&at, end, &tag)) {
        const ProtobufCFieldDescriptor *field =
            protobuf_c_message_descriptor_get_field(type, (unsigned)(tag >> 3));
        uint64_t wire = tag & 7;
        if (wire == WIRE_64 || wire == WIRE_32)
            size = wire == WIRE_64 ? 8 : 4;
        else if ((wire != WIRE_VARINT && wire != WIRE_BYTES) || !take_number(&at, end, &size))
            return true; /* protobuf-c says what is wrong with it */
        else if (wire == WIRE_VARINT)
            size = 0;
        if (size > (uint64_t)(end - at))
            return true;
        if (wire == WIRE_BYTES && field && field->type == PROTOBUF_C_TYPE_STRING &&
            memchr(at, 0, (size_t)size))
            return false;
        if (wire == WIRE_BYTES && field && field->type == PROTOBUF_C_TYPE_MESSAGE &&
            !names_are_whole(field->descriptor, at, (size_t)size))
            return false;
        at += size;
    }
    return true;
}

void names_clean(char *text)
{
    enum { DELETE = 127, CONTROL_LEAD = 0xc2, CONTROLS_END = 0xa0 }; /* U+0080 to U+009F */
    size_t rest = strlen(text);
    for (size_t size; rest > 0; text += size, rest -= size) {
        const unsigned char *byte = (const unsigned char *)text;
        size = text_utf8(text, rest);
        bool control = *byte < ' ' || *byte == DELETE ||
                       (size == 2 && *byte == CONTROL_LEAD && byte[1] < CONTROLS_END);
        if (!size || control) {
            size = size ? size : 1;
            memset(text, '?', size);
        }
    }
}
