/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

/* C interface between the program and a GPU library: libheadscope_gpu_cuda.so, _hip.so or _emulator.so, which are one
 * source compiled three times. Raw pointers into device memory and a stream; no LibTorch, no C++ types. One call works
 * on one sequence of a batch. Sizes are below 2^31, strides are in elements. */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HS_GPU_ABI 5U

enum { HS_DONE = 0, HS_MEMORY = 1, HS_CANCELLED = 2, HS_UNSUPPORTED = 3, HS_DEVICE_FAILED = 4 };
enum { HS_FLOAT32 = 0, HS_BFLOAT16 = 1 };
enum { HS_TO_DEVICE = 0, HS_TO_HOST = 1, HS_INSIDE = 2 };

typedef struct {
    int32_t status;
    char text[240];
} HsOutcome;

/* [heads, length, size] of one sequence. */
typedef struct {
    const void* data;
    int32_t type;
    int64_t head_stride, row_stride;
} HsMatrix;

typedef struct {
    void* data; /* null: not wanted */
    int32_t type;
    int64_t head_stride, row_stride;
} HsTarget;

/* ScoreRule of one sequence in base 2 (t = s log2(e)); pointers into device memory. */
typedef struct {
    int32_t query_end, key_begin, key_end, query_offset;
    int32_t causal, window_left, window_right, first_keys, window_segment;
    int32_t far_distance, near_begin;
    int32_t block_size, blocks, own_block;
    const uint8_t* visible; /* [heads, blocks] */
    float query_factor, soft_cap;
    const float* relative; /* [heads, relative_length]: position j - i' in column j - i' + relative_zero; null: none */
    int32_t relative_length, relative_zero;
    const float* sink_logits; /* [heads] or null */
    const float* offsets;     /* [heads, queries] of the elastic normalizer, or null */
    uint64_t dropout;         /* dropout_sequence() of kernels/summary/attention_dropout.h */
    uint32_t dropout_threshold; /* 0: none; with statistics it must be 0 */
    float dropout_factor;
} HsRule;

/* Sums of one block of 64 queries of one head, followed by one sum for each local distance. */
enum {
    HS_BLOCK_ROWS,
    HS_BLOCK_PAIRS,
    HS_BLOCK_ENTROPY,
    HS_BLOCK_SQUARES,
    HS_BLOCK_MASS,
    HS_BLOCK_VIRTUAL,
    HS_BLOCK_SINK,
    HS_BLOCK_DISTANCE,
    HS_BLOCK_SUM,
    HS_BLOCK_DEVIATIONS, /* squared, from the block's mean */
    HS_BLOCK_MINIMUM,
    HS_BLOCK_MAXIMUM,
    HS_BLOCK_FIELDS
};
#define HS_BLOCK_QUERIES 64
#define HS_HISTOGRAM_BINS 166

/* Statistics of one sequence. All arrays are in device memory; those marked 0 are zero before the call. */
typedef struct {
    float *minimum, *constant;                     /* [heads, queries] */
    float *entropy, *squares, *sink, *distance;    /* [heads, queries], 0; null: not wanted */
    double* blocks;                                /* [heads, query blocks, HS_BLOCK_FIELDS + distances] */
    unsigned long long* above;                     /* [heads, 3], 0 */
    unsigned long long* histogram;                 /* [heads, HS_HISTOGRAM_BINS], 0; null: not wanted */
    const double* edges;                           /* [HS_HISTOGRAM_BINS + 1] in units of s */
    int32_t histogram_step;
    int32_t distances;
    const int32_t* local;                          /* [distances] */
    float* kept;                                   /* [heads, queries, 1 + distances] workspace */
    double* diversity;                             /* [query blocks, key blocks], 0; null: not wanted */
    unsigned long long* columns;                   /* [heads, key_end - key_begin] fixed point, 0 */
    unsigned long long* cells;                     /* [heads, thumbnail_rows, thumbnail_columns], 0 */
    unsigned* cell_maxima;                         /* the same, bits of floats, 0 */
    unsigned* broken;                              /* [heads], 0: 1 if a sum left the range of fixed point */
    double scale, limit;                           /* of the fixed point numbers */
    int32_t thumbnail_rows, thumbnail_columns;
    unsigned long long* zeros;                     /* [heads], 0 */
    const int32_t* tokens;                         /* [keys]; null: no token scores */
    unsigned long long* token_sums;                /* [heads, 2] fixed point, 0: duplicate, induction */
} HsStatistics;

/* O = A V, the rows' constants and, where `statistics` is given, everything measured. */
typedef struct {
    HsMatrix query, key, value;
    int32_t heads, key_heads, queries, keys, key_size, value_size;
    int32_t normaliser; /* enum Normaliser of kernels/score_rule.h */
    HsRule rule;
    HsTarget output;
    float *shift, *factor; /* [heads, queries] */
    float* panel;          /* [panel_rows, keys] of normalizers that search whole rows; null otherwise */
    int32_t panel_rows;    /* a multiple of HS_BLOCK_QUERIES */
    const HsStatistics* statistics;
} HsAttention;

/* Gradients of attention of one sequence, from O, d loss / d O and the rows' constants (a.shift, a.factor). */
typedef struct {
    HsAttention a;
    HsMatrix output, gradient;
    HsTarget query, key, value;
    float* mean;                  /* [heads, queries] workspace; null for normalizers without a row mean */
    double* kept;                 /* [heads, queries] workspace for `offsets` */
    const double* offset_factors; /* [queries]: share of the offset that a row adds */
    double *sinks, *offsets;      /* [heads] or null */
    double* diagonals; /* [heads, queries + keys - 1] sums of d loss / d s by j - i from 1 - queries on, or null */
    double* of_keys;   /* [heads, keys] sums of A (dA - mean) over queries of other blocks; null: not wanted */
    int32_t hidden_blocks; /* of_keys: of hidden blocks, too, by the rows' constants as they are */
} HsBackward;

/* kernels/recurrent.h of one sequence. log_decay.data is null with HS_DECAY_NONE, write.data where w is 1. */
enum { HS_DECAY_NONE = 0, HS_DECAY_HEAD = 1, HS_DECAY_CHANNEL = 2 };
#define HS_RECURRENT_KEYS 256   /* numbers of a key at most */
#define HS_RECURRENT_PIECE 64   /* tokens between two states, as kRecurrentPiece */
#define HS_RECURRENT_COLUMNS 16 /* value columns of a block */
#define HS_RECURRENT_GROUPS 8   /* half warps of a block */
typedef struct {
    HsMatrix query, key;       /* [key_heads, length, key_size] */
    HsMatrix value;            /* [heads, length, value_size] */
    HsMatrix write, log_decay; /* [heads, length, 1 or key_size] float32 */
    int32_t heads, key_heads, length, tokens, key_size, value_size; /* `tokens` of `length` are no padding */
    int32_t delta, decay;
    float scale;
    int32_t chunk_size, chunk_begin, chunks, decays_dropped, reads_own_chunk;
    const float* kept;           /* [heads, chunks] */
    int32_t pieces;
    const int32_t* piece_begins; /* [pieces + 1], the last one is `length` */
    float* states;               /* [heads, pieces, key_size, value_size] the state at each piece's start, or null */
    float* sums; /* [heads, length, 1 or key_size] workspace: g summed from each chunk's start; null without decay */
} HsRecurrent;

typedef struct {
    HsRecurrent r;
    HsTarget output;
    float* now;       /* [heads, key_size, value_size] or null */
    float* start;     /* the same at the open chunk's start; null without chunks */
    float* decay_sum; /* [heads, 1 or key_size] g summed over the open chunk's tokens, or null */
} HsRecurrentForward;

typedef struct {
    HsRecurrent r; /* `states` are those of the forward pass */
    HsMatrix gradient;
    HsTarget query, key, value, write, log_decay;
    float* kept;                        /* [heads, chunks] or null */
    int32_t dropped_too;
    /* Workspace; parts = ceil(value_size / HS_RECURRENT_COLUMNS), band = band_pieces * HS_RECURRENT_PIECE tokens. */
    int32_t band_pieces; /* of one launch */
    const int32_t* host_begins; /* r.piece_begins in memory of the processor */
    float *later, *start; /* [heads, parts, HS_RECURRENT_COLUMNS, key_size], 0; start: null without chunks */
    float* carried;       /* [heads, parts, HS_RECURRENT_GROUPS, key_size], 0, of g; null without chunks */
    float* trail;         /* [heads, parts, HS_RECURRENT_PIECE, HS_RECURRENT_COLUMNS, key_size] */
    float *query_parts, *key_parts, *decay_parts; /* [heads, parts, band, key_size] */
    float* write_parts;                           /* [heads, parts, band] */
    float* kept_parts;                            /* [heads, parts, chunks], 0 */
} HsRecurrentBackward;

/* Rows of |A| of the implicit matrix; r.value is not read. */
typedef struct {
    HsRecurrent r;
    const float* direct; /* [heads] or null */
    float* dense;        /* [heads, length, length], 0; or null */
    double* rows;        /* [heads, length, 3] sum, entropy and sum of squares of the row over its sum */
} HsImplicit;

/* kernels/running.h of one sequence; `tokens` of `length` are no padding. */
#define HS_RUNNING_CHUNK 64
typedef struct {
    HsMatrix query, key, value; /* [heads, length, key_size], [key_heads, length, key_size or value_size] */
    int32_t heads, key_heads, length, tokens, key_size, value_size;
    float scale;
    float *score, *maximum, *denominator; /* [heads, length] */
} HsRunning;

typedef struct {
    HsRunning r;
    HsTarget output;
    float *held_numerator, *held_denominator, *held_maximum; /* [heads, value_size], [heads], [heads] or null */
    /* Workspace [heads, chunks of HS_RUNNING_CHUNK]: sums of a chunk; the same of all before it. */
    float *chunk_maximum, *earlier_maximum;
    double *chunk_denominator, *earlier_denominator;
    float* numerators; /* [heads, chunks, value_size] */
} HsRunningForward;

typedef struct {
    HsRunning r;
    HsMatrix output, gradient;
    HsTarget query, key, value;
    /* Workspace. */
    float *products, *slopes;                 /* [heads, length] */
    float *later, *later_products;            /* [heads, chunks, value_size], [heads, chunks] */
    float *key_parts, *value_parts;           /* [heads, length, key_size], [heads, length, value_size] */
} HsRunningBackward;

/* kernels/taylor_state.h of one sequence, with a state. */
#define HS_TAYLOR_CHUNK 64
#define HS_TAYLOR_SEGMENT 64
typedef struct {
    HsMatrix query, key, value;
    int32_t heads, key_heads, length, key_size, value_size, normaliser;
    float scale;
    HsTarget output;
    int32_t features;
    const int32_t* numbers; /* [features, 2] the numbers of a key that a row is the product of; -1: 1 in their place */
    float* state;           /* [key_heads, features, value_size + 1] */
    /* [segments, heads, HS_TAYLOR_CHUNK, value_size + 1] workspace; segments of at most HS_TAYLOR_SEGMENT features,
     * those of the first and of the second order apart. */
    float* parts;
} HsTaylor;

/* Row operators (kernels/rows.h); all tensors of a call have one type, rows lie together unless a stride is given. */
#define HS_SUM_ROWS 64 /* rows that one part of a sum over rows has */
typedef struct {
    int64_t rows;
    int32_t size, type;
    const void *x, *gain;
    float epsilon, gain_offset;
    float* inverse;       /* [rows]; null: not wanted */
    void* y;              /* of the backward pass: the gradient of x */
    const void *dy, *addend; /* of the backward pass; addend may be null */
    float *d_gain, *parts;   /* [size], [ceil(rows / HS_SUM_ROWS), size] workspace; null: not wanted */
} HsRmsNorm;

typedef struct {
    int64_t rows;
    int32_t size, type;
    const void *gate_up, *dy; /* dy null: forward */
    void* y;
} HsGatedSilu;

typedef struct {
    int64_t rows, positions, row_stride, y_stride;
    int32_t heads, size, turned, type, interleaved, backward;
    const void *cosine, *sine, *x;
    void* y;
} HsRotation;

typedef struct {
    int64_t rows, entries;
    int32_t type, gradients;
    void* logits;
    const int64_t* targets;
    double z_loss;
    double *loss, *normaliser;
} HsCrossEntropy;

/* kernels/convolution.h */
typedef struct {
    int64_t batch, length, channels, row_stride;
    int32_t taps, type, plain;
    const void *x, *weight, *bias, *before;
    void* y;
    const void* dy; /* what follows: of the backward pass */
    void* dx;
    float *d_weight, *d_bias;
    float* slopes;                     /* [batch, length, channels] workspace */
    float *weight_parts, *bias_parts;  /* [batch * ceil(length / HS_SUM_ROWS), channels, taps or 1] workspace */
} HsConvolution;

/* kernels/optimizer.h */
typedef struct {
    int64_t size, decayed;
    int32_t type, gradient_type;
    void* weights;
    float* master;
    void* gradients;
    float *first, *second;
    float gradient_scale, keep_first, add_first, keep_second, add_second, step, second_scale, epsilon, shrink;
    int32_t clear;
} HsAdamW;

#define HS_NORM_PIECE 65536
typedef struct {
    int64_t size;
    int32_t type;
    const void* values;
    double* sums; /* [ceil(size / HS_NORM_PIECE)] */
} HsSquaredNorm;

/* Cancel flag and stream of one call. */
typedef struct {
    int (*cancelled)(void* self);
    void *self, *stream;
} HsCall;

typedef struct {
    uint32_t abi;
    const char* name; /* "cuda", "hip", "emulator" */
    const char* architectures; /* that it has code for: "sm_80+sm_90", "gfx90a"; empty: not known */
    int32_t reuses_memory; /* 1: blocks may serve several calls; 0: `allocate` marks each as uninitialized */
    int (*devices)(void);
    void (*select)(int device, HsOutcome*);
    void* (*allocate)(size_t bytes, HsOutcome*);
    void (*release)(void*);
    void (*clear)(void* memory, size_t bytes, void* stream, HsOutcome*);
    void (*copy)(void* to, const void* from, size_t bytes, int direction, void* stream, HsOutcome*);
    void (*wait)(void* stream, HsOutcome*);
    void (*configure)(int warp); /* threads of a warp of the emulator; null elsewhere */
    /* 1: `attention` and `attention_backward` multiply bfloat16 operands, d loss / d O with them, on tensor cores */
    int (*mma)(int normaliser);
    /* One entry for each row of kernels/operators.h, and row operators; null: the library has none. */
    void (*attention)(const HsAttention*, const HsCall*, HsOutcome*);
    void (*attention_backward)(const HsBackward*, const HsCall*, HsOutcome*);
    void (*recurrent_forward)(const HsRecurrentForward*, const HsCall*, HsOutcome*);
    void (*recurrent_backward)(const HsRecurrentBackward*, const HsCall*, HsOutcome*);
    void (*implicit)(const HsImplicit*, const HsCall*, HsOutcome*);
    void (*running_forward)(const HsRunningForward*, const HsCall*, HsOutcome*);
    void (*running_backward)(const HsRunningBackward*, const HsCall*, HsOutcome*);
    void (*taylor)(const HsTaylor*, const HsCall*, HsOutcome*);
    void (*rms_norm)(const HsRmsNorm*, const HsCall*, HsOutcome*);
    void (*rms_norm_backward)(const HsRmsNorm*, const HsCall*, HsOutcome*);
    void (*gated_silu)(const HsGatedSilu*, const HsCall*, HsOutcome*);
    void (*rotate)(const HsRotation*, const HsCall*, HsOutcome*);
    void (*cross_entropy)(const HsCrossEntropy*, const HsCall*, HsOutcome*);
    void (*convolution)(const HsConvolution*, const HsCall*, HsOutcome*);
    void (*convolution_backward)(const HsConvolution*, const HsCall*, HsOutcome*);
    void (*adamw)(const HsAdamW*, const HsCall*, HsOutcome*);
    void (*squared_norm)(const HsSquaredNorm*, const HsCall*, HsOutcome*);
} HsPlugin;

/* Null for another version of the interface. */
typedef const HsPlugin* (*HsPluginFunction)(uint32_t abi);
const HsPlugin* headscope_gpu_plugin(uint32_t abi);

#ifdef __cplusplus
}
#endif
