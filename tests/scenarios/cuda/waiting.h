// The threads of a block, and what those that wait have to wait for.
#pragma once
#include "gather.h"
#include "memory.h"

struct Index { unsigned x, y, z; };
extern "C" { Index threadIdx, blockIdx, blockDim, gridDim; }

namespace {
constexpr int MOST_THREADS = 1024, LANES = 32;
enum Wait { RUNS, ENDED, AT_BARRIER, AT_WARP };

struct Thread {
    Wait wait;
    int fiber, line, gather, source;
    unsigned mask;
    uint64_t value;
    int predicate;
};

Thread threads[MOST_THREADS];
int count;

Index index_of(int thread) {
    unsigned i = (unsigned)thread;
    return {i % blockDim.x, i / blockDim.x % blockDim.y, i / blockDim.x / blockDim.y};
}

void say_where(int thread) {
    Index at = index_of(thread);
    say("thread (%u, %u, %u) of block (%u, %u, %u)", at.x, at.y, at.z, blockIdx.x, blockIdx.y, blockIdx.z);
}

// What a lane gets of the lanes in the mask.
uint64_t gathered(unsigned mask, const Thread& it, const uint64_t* values) {
    if (it.gather == EXCHANGE) {
        bool there = it.source >= 0 && it.source < LANES && mask >> it.source & 1;
        return there ? values[it.source] : ~0ull;
    }
    uint64_t all = it.gather == AND || it.gather == LEAST ? 0xffffffffu : it.gather == LEAST_SIGNED ? INT32_MAX : 0;
    if (it.gather == MOST_SIGNED) all = (uint64_t)INT32_MIN;
    for (int lane = 0; lane < LANES; lane++) {
        if (!(mask >> lane & 1)) continue;
        uint64_t value = values[lane];
        switch (it.gather) {
            case MEET: break;
            case BALLOT: all |= (value & 1) << lane; break;
            case ADD: all = (uint32_t)(all + value); break;
            case AND: all &= value; break;
            case OR: all |= value; break;
            case XOR: all ^= value; break;
            case LEAST: all = std::min(all, (uint64_t)(uint32_t)value); break;
            case MOST: all = std::max(all, (uint64_t)(uint32_t)value); break;
            case LEAST_SIGNED: all = (uint64_t)std::min((int32_t)all, (int32_t)value); break;
            case MOST_SIGNED: all = (uint64_t)std::max((int32_t)all, (int32_t)value); break;
            case MATCH: all |= (uint64_t)(value == it.value) << lane; break;
        }
    }
    return all;
}

// Lanes go on whose whole mask, except for threads that ended, waits for the same.
bool release_warps() {
    bool released = false;
    for (int first = 0; first < count; first += LANES) {
        int lanes = std::min(LANES, count - first);
        uint64_t values[LANES];
        for (int lane = 0; lane < lanes; lane++) values[lane] = threads[first + lane].value;
        unsigned done = 0;
        for (int lane = 0; lane < lanes; lane++) {
            const Thread it = threads[first + lane];
            if (it.wait != AT_WARP || done >> lane & 1) continue;
            unsigned here = 0;
            bool all = true;
            for (int other = 0; other < lanes; other++) {
                const Thread& that = threads[first + other];
                if (!(it.mask >> other & 1) || that.wait == ENDED) continue;
                all = all && that.wait == AT_WARP && that.mask == it.mask && that.gather == it.gather;
                here |= 1u << other;
            }
            if (!all) continue;
            for (int other = 0; other < lanes; other++) {
                if (!(here >> other & 1)) continue;
                Thread& that = threads[first + other];
                that.value = gathered(here, that, values);
                that.wait = RUNS;
            }
            done |= here, released = true;
        }
    }
    return released;
}

int first_that(Wait wait) {
    for (int thread = 0; thread < count; thread++) {
        if (threads[thread].wait == wait) return thread;
    }
    return -1;
}

// All threads go on that wait at the barrier, if all do at the same one; what is wrong is said if not.
bool release_barrier() {
    int waits = first_that(AT_BARRIER), in_warp = first_that(AT_WARP), ended = first_that(ENDED);
    if (in_warp >= 0) {
        say_where(in_warp);
        const Thread& it = threads[in_warp];
        say(" waits on line %d for lanes %#x of its warp, which never all come", it.line, it.mask);
        return false;
    }
    int line = threads[waits].line, total = 0, all = 1;
    if (ended >= 0) {
        say_where(ended);
        say(" ends without the __syncthreads of line %d, at which others wait", line);
        return false;
    }
    for (int thread = 0; thread < count; thread++) {
        if (threads[thread].line != line) {
            say_where(thread);
            say(" waits at the __syncthreads of line %d, and others at that of line %d", threads[thread].line, line);
            return false;
        }
        total += threads[thread].predicate != 0, all = all && threads[thread].predicate;
    }
    for (int thread = 0; thread < count; thread++) {
        threads[thread].value = (uint64_t)total << 1 | (uint64_t)all;
        threads[thread].wait = RUNS;
    }
    return true;
}
}  // namespace
