/* vec_neon.h: vec.h for NEON: 8 floats in two of 32 registers, so that the loops see as many lanes
 * and accumulators as with AVX2. */
#ifndef PRONY_BACKEND_CPU_SIMD_VEC_NEON_H
#define PRONY_BACKEND_CPU_SIMD_VEC_NEON_H

#include <arm_neon.h>
#include <stdint.h>

#define VEC_LANES 8
#define VEC_MOST 12

typedef float32x4_t quad;
typedef struct {
    quad low, high;
} vec;

#define quad_load vld1q_f32
#define quad_load_any vld1q_f32
#define quad_store vst1q_f32
#define quad_store_any vst1q_f32
#define quad_set vdupq_n_f32
#define quad_sub vsubq_f32
#define quad_mul vmulq_f32

static inline vec vec_load(const float *from)
{
    return (vec){vld1q_f32(from), vld1q_f32(from + 4)};
}
static inline void vec_store(float *to, vec v)
{
    vst1q_f32(to, v.low);
    vst1q_f32(to + 4, v.high);
}
#define vec_load_any vec_load
#define vec_store_any vec_store
static inline vec vec_set(float value)
{
    return (vec){vdupq_n_f32(value), vdupq_n_f32(value)};
}
static inline vec vec_zero(void)
{
    return vec_set(0);
}
static inline vec vec_fma(vec a, vec b, vec c)
{
    return (vec){vfmaq_f32(c.low, a.low, b.low), vfmaq_f32(c.high, a.high, b.high)};
}
static inline vec vec_fnma(vec a, vec b, vec c)
{
    return (vec){vfmsq_f32(c.low, a.low, b.low), vfmsq_f32(c.high, a.high, b.high)};
}
static inline quad quad_low_bf16(quad words)
{
    return vreinterpretq_f32_u32(vshlq_n_u32(vreinterpretq_u32_f32(words), 16));
}
static inline quad quad_high_bf16(quad words)
{
    return vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(words), vdupq_n_u32(0xFFFF0000u)));
}
static inline vec vec_low_bf16(vec words)
{
    return (vec){quad_low_bf16(words.low), quad_low_bf16(words.high)};
}
static inline vec vec_high_bf16(vec words)
{
    return (vec){quad_high_bf16(words.low), quad_high_bf16(words.high)};
}
static inline vec vec_negative(vec v)
{
    return (vec){vnegq_f32(v.low), vnegq_f32(v.high)};
}
static inline vec vec_fnms(vec a, vec b, vec c)
{
    return vec_fnma(a, b, vec_negative(c));
}
static inline vec vec_mul(vec a, vec b)
{
    return (vec){vmulq_f32(a.low, b.low), vmulq_f32(a.high, b.high)};
}
static inline vec vec_add(vec a, vec b)
{
    return (vec){vaddq_f32(a.low, b.low), vaddq_f32(a.high, b.high)};
}
static inline vec vec_sub(vec a, vec b)
{
    return (vec){vsubq_f32(a.low, b.low), vsubq_f32(a.high, b.high)};
}
static inline vec vec_div(vec a, vec b)
{
    return (vec){vdivq_f32(a.low, b.low), vdivq_f32(a.high, b.high)};
}
static inline vec vec_sqrt(vec v)
{
    return (vec){vsqrtq_f32(v.low), vsqrtq_f32(v.high)};
}
static inline vec vec_abs(vec v)
{
    return (vec){vabsq_f32(v.low), vabsq_f32(v.high)};
}
/* where a > b: yes, else no */
static inline vec vec_where_above(vec a, vec b, vec yes, vec no)
{
    return (vec){vbslq_f32(vcgtq_f32(a.low, b.low), yes.low, no.low),
                 vbslq_f32(vcgtq_f32(a.high, b.high), yes.high, no.high)};
}
/* Not NEON's own, which gives NaN. */
static inline vec vec_max(vec a, vec b)
{
    return vec_where_above(a, b, a, b);
}
static inline vec vec_min(vec a, vec b)
{
    return vec_where_above(b, a, a, b);
}
static inline vec vec_choose_positive(vec v, vec a, vec b)
{
    return vec_where_above(v, vec_zero(), a, b);
}
static inline vec vec_where_small(vec v, float limit, vec a, vec b)
{
    return vec_where_above(vec_set(limit), vec_abs(v), a, b);
}
static inline quad quad_sign_of(quad v, quad magnitude)
{
    uint32x4_t sign = vandq_u32(vreinterpretq_u32_f32(v), vdupq_n_u32(0x80000000u));
    return vreinterpretq_f32_u32(vorrq_u32(vreinterpretq_u32_f32(magnitude), sign));
}
static inline vec vec_sign_of(vec v, vec magnitude)
{
    return (vec){quad_sign_of(v.low, magnitude.low), quad_sign_of(v.high, magnitude.high)};
}
/* Float number `which` of 8, of each lane, or of the one lane that is asked for: four bytes each.
 */
static inline quad quad_look_up(uint8x16x2_t eight, uint32x4_t which)
{
    uint32x4_t bytes = vmlaq_n_u32(vdupq_n_u32(0x03020100u), which, 0x04040404u);
    return vreinterpretq_f32_u8(vqtbl2q_u8(eight, vreinterpretq_u8_u32(bytes)));
}
static inline quad quad_eighth_power(quad k)
{
    uint32x4_t bits = vreinterpretq_u32_f32(k);
    uint8x16x2_t eighths = {{vreinterpretq_u8_s32(vld1q_s32(vec_eighths)),
                             vreinterpretq_u8_s32(vld1q_s32(vec_eighths + 4))}};
    quad eighth = quad_look_up(eighths, vandq_u32(bits, vdupq_n_u32(7)));
    return vreinterpretq_f32_u32(vaddq_u32(vreinterpretq_u32_f32(eighth), vshlq_n_u32(bits, 20)));
}
static inline vec vec_eighth_power(vec k)
{
    return (vec){quad_eighth_power(k.low), quad_eighth_power(k.high)};
}
static inline vec vec_lane(vec v, int32_t i)
{
    uint8x16x2_t eight = {{vreinterpretq_u8_f32(v.low), vreinterpretq_u8_f32(v.high)}};
    quad lane = quad_look_up(eight, vdupq_n_u32((uint32_t)i));
    return (vec){lane, lane};
}
static inline float vec_low(vec v)
{
    return vgetq_lane_f32(v.low, 0);
}
static inline quad quad_split(quad v, quad *mantissa)
{
    const quad infinite = vdupq_n_f32(__builtin_inff());
    uint32x4_t small = vcltq_f32(v, vdupq_n_f32(0x1p-126f));
    quad normal = vbslq_f32(small, vmulq_f32(v, vdupq_n_f32(0x1p25f)), v);
    uint32x4_t bits = vreinterpretq_u32_f32(normal);
    int32x4_t exponent = vreinterpretq_s32_u32(vshrq_n_u32(bits, 23));
    quad k = vcvtq_f32_s32(vsubq_s32(exponent, vdupq_n_s32(127)));
    k = vbslq_f32(small, vsubq_f32(k, vdupq_n_f32(25)), k);
    *mantissa = vreinterpretq_f32_u32(
        vorrq_u32(vandq_u32(bits, vdupq_n_u32(0x7FFFFF)), vdupq_n_u32(0x3F800000)));
    k = vbslq_f32(vcltq_f32(v, infinite), k, v); /* ∞, and NaN */
    k = vbslq_f32(vceqzq_f32(v), vnegq_f32(infinite), k);
    return vbslq_f32(vcltzq_f32(v), vdupq_n_f32(__builtin_nanf("")), k);
}
static inline vec vec_split(vec v, vec *mantissa)
{
    return (vec){quad_split(v.low, &mantissa->low), quad_split(v.high, &mantissa->high)};
}
#define vec_quarter_lane(v, j) ((vec){vdupq_laneq_f32((v).low, j), vdupq_laneq_f32((v).high, j)})
#define vec_quarter_put(into, v, j)                                                                \
    ((vec){vcopyq_laneq_f32((into).low, j, (v).low, 0),                                            \
           vcopyq_laneq_f32((into).high, j, (v).high, 0)})
static inline vec vec_repeat(const float *four)
{
    return (vec){vld1q_f32(four), vld1q_f32(four)};
}
static inline quad vec_fold(vec v)
{
    return vaddq_f32(v.low, v.high);
}
static inline __attribute__((always_inline)) void vec_fold_step(const vec *v, vec rate, float *c,
                                                                float *transposed)
{
    float32x4x4_t rows;
    for (int r = 0; r < 4; r++) {
        rows.val[r] = vfmsq_f32(vld1q_f32(c + 4 * r), vec_fold(v[r]), rate.low);
        vst1q_f32(c + 4 * r, rows.val[r]);
    }
    if (transposed)
        vst4q_f32(transposed, rows);
}
static inline void vec_sum4(vec a, vec b, vec c, vec d, float *out)
{
    vst1q_f32(out, vpaddq_f32(vpaddq_f32(vec_fold(a), vec_fold(b)),
                              vpaddq_f32(vec_fold(c), vec_fold(d))));
}
static inline float vec_sum(vec v)
{
    return vaddvq_f32(vec_fold(v));
}
/* Of four lanes those below `count`, which may be any number. */
static inline uint32x4_t quad_mask_of(int64_t count)
{
    static const int32_t numbers[4] = {0, 1, 2, 3};
    return vcgtq_s32(vdupq_n_s32((int32_t)count), vld1q_s32(numbers));
}
static inline vec vec_first(vec v, int64_t n)
{
    return (vec){vbslq_f32(quad_mask_of(n), v.low, vdupq_n_f32(0)),
                 vbslq_f32(quad_mask_of(n - 4), v.high, vdupq_n_f32(0))};
}
static inline quad quad_load_part(const float *from, int64_t count)
{
    const float32x2_t none = vdup_n_f32(0);
    switch (count) {
    case 0: return vdupq_n_f32(0);
    case 1: return vsetq_lane_f32(*from, vdupq_n_f32(0), 0);
    case 2: return vcombine_f32(vld1_f32(from), none);
    case 3: return vcombine_f32(vld1_f32(from), vset_lane_f32(from[2], none, 0));
    default: return vld1q_f32(from);
    }
}
static inline void quad_store_part(float *to, quad v, int64_t count)
{
    if (count >= 4) {
        vst1q_f32(to, v);
        return;
    }
    if (count >= 2)
        vst1_f32(to, vget_low_f32(v));
    if (count == 1)
        vst1q_lane_f32(to, v, 0);
    else if (count == 3)
        vst1q_lane_f32(to + 2, v, 2);
}
static inline vec vec_load_part(const float *from, int64_t count)
{
    if (count >= VEC_LANES)
        return vec_load(from);
    if (count < 4)
        return (vec){quad_load_part(from, count), vdupq_n_f32(0)};
    return (vec){vld1q_f32(from), quad_load_part(from + 4, count - 4)};
}
static inline void vec_store_part(float *to, vec v, int64_t count)
{
    quad_store_part(to, v.low, count);
    if (count > 4)
        quad_store_part(to + 4, v.high, count - 4);
}
static inline vec vec_load_mask(const float *from, uint32_t mask)
{
    float lanes[VEC_LANES];
    if ((mask & 0xFF) == 0xFF)
        return vec_load(from);
    for (int i = 0; i < VEC_LANES; i++)
        lanes[i] = mask >> i & 1 ? from[i] : 0;
    return vec_load(lanes);
}

static inline void quad_transpose(quad *a, quad *b, quad *c, quad *d)
{
    float64x2_t ab1 = vreinterpretq_f64_f32(vtrn1q_f32(*a, *b)),
                ab2 = vreinterpretq_f64_f32(vtrn2q_f32(*a, *b)),
                cd1 = vreinterpretq_f64_f32(vtrn1q_f32(*c, *d)),
                cd2 = vreinterpretq_f64_f32(vtrn2q_f32(*c, *d));
    *a = vreinterpretq_f32_f64(vtrn1q_f64(ab1, cd1));
    *b = vreinterpretq_f32_f64(vtrn1q_f64(ab2, cd2));
    *c = vreinterpretq_f32_f64(vtrn2q_f64(ab1, cd1));
    *d = vreinterpretq_f32_f64(vtrn2q_f64(ab2, cd2));
}
static inline void vec_transpose(vec *v)
{
    quad_transpose(&v[0].low, &v[1].low, &v[2].low, &v[3].low);
    quad_transpose(&v[0].high, &v[1].high, &v[2].high, &v[3].high);
    quad_transpose(&v[4].low, &v[5].low, &v[6].low, &v[7].low);
    quad_transpose(&v[4].high, &v[5].high, &v[6].high, &v[7].high);
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        quad other = v[i].high;
        v[i].high = v[4 + i].low;
        v[4 + i].low = other;
    }
}
static inline void transpose_8x8(const float *from, int64_t from_stride, float *to,
                                 int64_t to_stride)
{
    vec row[8];
#pragma GCC unroll 8
    for (int r = 0; r < 8; r++)
        row[r] = vec_load(from + r * from_stride);
    vec_transpose(row);
#pragma GCC unroll 8
    for (int c = 0; c < 8; c++)
        vec_store(to + c * to_stride, row[c]);
}

typedef struct {
    int32x4_t low, high;
} pick_index;
static inline vec pick_even(vec a, vec b)
{
    return (vec){vuzp1q_f32(a.low, a.high), vuzp1q_f32(b.low, b.high)};
}
static inline vec pick_odd(vec a, vec b)
{
    return (vec){vuzp2q_f32(a.low, a.high), vuzp2q_f32(b.low, b.high)};
}
/* where v is a number: yes, else no */
static inline vec vec_where_number(vec v, vec yes, vec no)
{
    return (vec){vbslq_f32(vceqq_f32(v.low, v.low), yes.low, no.low),
                 vbslq_f32(vceqq_f32(v.high, v.high), yes.high, no.high)};
}
static inline vec pick_largest(vec a, vec b)
{
    return vec_where_number(a, vec_max(a, b), a);
}
static inline pick_index pick_series(int32_t step)
{
    static const int32_t numbers[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    return (pick_index){vmulq_n_s32(vld1q_s32(numbers), step),
                        vmulq_n_s32(vld1q_s32(numbers + 4), step)};
}
static inline pick_index pick_moved(pick_index index, int32_t by)
{
    return (pick_index){vaddq_s32(index.low, vdupq_n_s32(by)),
                        vaddq_s32(index.high, vdupq_n_s32(by))};
}
/* One half of pick_larger. */
static inline void quad_larger(quad value, int32x4_t index, quad *best, int32x4_t *best_index)
{
    uint32x4_t none = vmvnq_u32(vceqq_f32(value, value)); /* NaN */
    uint32x4_t larger = vorrq_u32(vcgtq_f32(value, *best), none);
    *best = vbslq_f32(larger, value, *best);
    *best_index = vbslq_s32(larger, index, *best_index);
}
static inline void pick_larger(vec value, pick_index index, vec *best, pick_index *best_index)
{
    quad_larger(value.low, index.low, &best->low, &best_index->low);
    quad_larger(value.high, index.high, &best->high, &best_index->high);
}
static inline vec pick_masked(const float *x, int32_t step, uint32_t mask)
{
    float lanes[VEC_LANES];
    for (int i = 0; i < VEC_LANES; i++)
        lanes[i] = mask >> i & 1 ? x[(int64_t)i * step] : 0;
    return vec_load(lanes);
}
static inline void pick_store(int32_t *to, pick_index index, int64_t count)
{
    int32_t lanes[VEC_LANES];
    vst1q_s32(lanes, index.low);
    vst1q_s32(lanes + 4, index.high);
    for (int i = 0; i < VEC_LANES && i < count; i++)
        to[i] = lanes[i];
}

/* As on x86: into L2; the number is read where it lies; a value stays in its registers. */
#define vec_prefetch(address) __builtin_prefetch(address, 0, 2)
#define vec_fma_at(sum, value, address) ((sum) = vec_fma(value, vec_load(address), sum))
#define vec_pin(value) __asm__("" : "+w"((value).low), "+w"((value).high))

#endif
