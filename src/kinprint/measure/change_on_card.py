"""The sums of `change_sums` on a graphics card, in one pass over the numbers.

A row of a block is one group of threads, and a thread has the columns that are folded into one.
What a group found is added to what others did, in an order that changes: sums differ by rounding
from run to run.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kinprint.device import Array

_THREADS = 256  # a column of the folded change each; as many as it has at most
_SOURCE = r"""
__device__ double total(double value, double* room) {
    int thread = threadIdx.x;
    __syncthreads();
    room[thread] = value;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (thread < half) room[thread] += room[thread + half];
        __syncthreads();
    }
    return room[0];
}

extern "C" __global__ void change(
    const float* x, const float* y, const bool* equal,
    const float* row_signs, const float* column_signs, const float* coins,
    long long columns, long long first_row, long long first_column,
    int tall, int wide, int stripe, int every, long long summed,
    double* totals, unsigned long long* counts, unsigned int* largest,
    float* folded, float* shuffled, double* row_squares, double* column_squares)
{
    __shared__ double room[256];
    long long row = blockIdx.x, place = first_row + row;
    double sums[3] = {0, 0, 0}, row_square = 0;
    double found[5] = {0, 0, 0, 0, 0};
    float most = 0;
    for (int to = threadIdx.x; to < wide; to += blockDim.x) {
        float fold = 0, coin_fold = 0;
        double column_square = 0;
        long long first = (to - first_column % wide + wide) % wide;
        for (long long column = first; column < columns; column += wide) {
            long long at = row * columns + column;
            float a = x[at], b = y[at], d = b - a;
            bool same = equal[at];
            if (!(isfinite(a) && isfinite(b) && isfinite(d))) {
                if (same || (isnan(a) && isnan(b))) found[0] += 1; else found[1] += 1;
                continue;
            }
            found[0] += same;
            found[2] += a != 0 && b == 0;
            found[3] += a == 0 && b != 0;
            found[4] += a == 0 && b == 0;
            sums[0] += (double)a * a;
            sums[1] += (double)a * d;
            sums[2] += (double)d * d;
            most = fmaxf(most, fabsf(d));
            if (column < summed) row_square += (double)b * b;
            column_square += (double)b * b;
            float signed_d = d * column_signs[column];
            fold += signed_d;
            coin_fold += signed_d * coins[at];
        }
        long long cell = place % tall * wide + to;
        atomicAdd(folded + cell, fold * row_signs[row]);
        atomicAdd(shuffled + cell, coin_fold * row_signs[row]);
        if (place / stripe % every == 0) atomicAdd(column_squares + to, column_square);
    }
    atomicMax(largest, __float_as_uint(most));
    for (int which = 0; which < 3; which++) {
        double sum = total(sums[which], room);
        if (threadIdx.x == 0) atomicAdd(totals + which, sum);
    }
    for (int which = 0; which < 5; which++) {
        double sum = total(found[which], room);
        if (threadIdx.x == 0) atomicAdd(counts + which, (unsigned long long)sum);
    }
    double sum = total(row_square, room);
    if (threadIdx.x == 0) atomicAdd(row_squares + place % tall, sum);
}
"""


class CardSums(Struct, frozen=True, eq=False):
    """What one pass found; names are those of `ChangeSums`."""

    totals: NDArray[np.float64]
    equal: int
    broken: int
    zeroed: int
    filled: int
    zeros: int
    largest: float
    folded: NDArray[np.float32]
    shuffled: NDArray[np.float32]
    row_squares: NDArray[np.float64]
    column_squares: NDArray[np.float64]


def card_sums(
    x: Array,
    y: Array,
    equal: Array,
    signs: tuple[Array, Array],
    coins: Array,
    *,
    first: tuple[int, int],
    folds: tuple[int, int],
    stripes: tuple[int, int],
    summed: int,
) -> CardSums:
    """Sums over a block of a matrix that is on the card.

    Parameters
    ----------
    x, y : the block before and after, in single precision.
    equal : which numbers are equal as they are stored.
    signs : of the block's rows and columns.
    coins : a random sign for each number.
    first : the place of the first row and column in the matrix.
    folds : rows and columns of the folded change.
    stripes : how many rows are a stripe, and of how many one has its columns summed.
    summed : columns of the block whose squares are summed for rows.
    """
    import cupy

    rows, columns = x.shape
    tall, wide = folds
    totals, counts = cupy.zeros(3), cupy.zeros(5, cupy.uint64)
    largest = cupy.zeros(1, cupy.uint32)
    folded, shuffled = cupy.zeros((2, tall, wide), cupy.float32)
    row_squares, column_squares = cupy.zeros(tall), cupy.zeros(wide)
    if rows and columns:
        numbers = np.int64(columns), np.int64(first[0]), np.int64(first[1])
        shapes = map(np.int32, (tall, wide, *stripes))
        _kernel()(
            (rows,),
            (_THREADS,),
            (
                *(x, y, equal, *signs, coins, *numbers, *shapes, np.int64(summed)),
                *(totals, counts, largest, folded, shuffled, row_squares, column_squares),
            ),
        )
    equal_ones, broken, zeroed, filled, zeros = cupy.asnumpy(counts).tolist()
    return CardSums(
        cupy.asnumpy(totals),
        equal_ones,
        broken,
        zeroed,
        filled,
        zeros,
        float(cupy.asnumpy(largest.view(cupy.float32))[0]),
        cupy.asnumpy(folded),
        cupy.asnumpy(shuffled),
        cupy.asnumpy(row_squares),
        cupy.asnumpy(column_squares),
    )


@cache
def _kernel() -> Any:
    import cupy

    return cupy.RawKernel(_SOURCE, "change")
