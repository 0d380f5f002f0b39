// Runs the blocks of a kernel one after another, the threads of a block as fibers, which run until they wait.
// Tensors lie in memory of their own meanwhile, before and behind which is none.
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

enum Wait { RUNS, ENDED, AT_BARRIER, AT_WARP };
enum Gather { EXCHANGE, BALLOT, ADD, AND, OR, XOR, LEAST, MOST, LEAST_SIGNED, MOST_SIGNED, MATCH };
struct Index { unsigned x, y, z; };

extern "C" {
Index threadIdx, blockIdx, blockDim, gridDim;

// A tensor's memory, the number of the first argument that lies in it, and where it lies while the kernel runs.
struct Storage {
    char* data;
    uint64_t bytes;
    int argument;
    char* placed;
};
}

namespace {
constexpr int MOST_THREADS = 1024, LANES = 32;
constexpr size_t STACK = 256 << 10, GUARD = 1 << 20, MARGIN = 64;
constexpr unsigned char POISON = 0xff;  // NaN in every floating-point type, and -1

// Around a tensor: NaN in 32 bits and in 64, but others than around another tensor, lest a copy of them be overlooked.
unsigned char around(const char* address, int tensor) {
    const unsigned char bytes[] = {(unsigned char)tensor, 0xa5, 0xff, 0xff};
    return bytes[(uintptr_t)address % 4];
}

struct Fiber {
    jmp_buf where;
    ucontext_t context;
    bool started;
};

struct Thread {
    Wait wait;
    int fiber, line, gather, source;
    unsigned mask;
    uint64_t value;
    int predicate;
};

Fiber fibers[MOST_THREADS];
Thread threads[MOST_THREADS];
std::vector<int> idle;
std::vector<std::pair<void*, uint64_t>> shared_arrays;
char *stacks, alternate[64 << 10];
jmp_buf home;
void (*run_thread)();
int current, count, turn;
bool backward;
volatile bool inside;
char message[1024];
char* dynamic_shared;
Storage* storages;
int storage_count;
long page = sysconf(_SC_PAGESIZE);

Index index_of(int thread) {
    unsigned i = (unsigned)thread;
    return {i % blockDim.x, i / blockDim.x % blockDim.y, i / blockDim.x / blockDim.y};
}

int in_turn(int place) { return backward ? count - 1 - place : place; }

void say(const char* format, ...) {
    va_list values;
    va_start(values, format);
    size_t used = strlen(message);
    vsnprintf(message + used, sizeof(message) - used, format, values);
    va_end(values);
}

void say_where(int thread) {
    Index at = index_of(thread);
    say("thread (%u, %u, %u) of block (%u, %u, %u)", at.x, at.y, at.z, blockIdx.x, blockIdx.y, blockIdx.z);
}

[[noreturn]] void give_up() {
    inside = false;
    _longjmp(home, 2);
}

void wait(Wait what) {
    threads[current].wait = what;
    if (!_setjmp(fibers[threads[current].fiber].where)) _longjmp(home, 1);
}

// The next one in turn that has not begun, which the fiber of one that ended takes on: a switch costs more than a thread.
int next_to_begin() {
    if (turn + 1 >= count) return -1;
    int thread = in_turn(turn + 1);
    return threads[thread].wait == RUNS && threads[thread].fiber < 0 ? thread : -1;
}

void run_fiber() {
    for (;;) {
        run_thread();
        int next = next_to_begin();
        if (next < 0) {
            wait(ENDED);
            continue;
        }
        threads[current].wait = ENDED;
        std::swap(threads[next].fiber, threads[current].fiber);
        current = next, turn++;
        threadIdx = index_of(next);
    }
}

// Whether the thread went on until it waits or ended; not where it failed.
bool resume(int thread) {
    Thread& it = threads[thread];
    if (it.fiber < 0) {
        it.fiber = idle.back();
        idle.pop_back();
    }
    Fiber& fiber = fibers[it.fiber];
    current = thread;
    threadIdx = index_of(thread);
    inside = true;
    int came_back = _setjmp(home);
    if (came_back == 0) {
        if (fiber.started) _longjmp(fiber.where, 1);
        fiber.started = true;
        getcontext(&fiber.context);
        fiber.context.uc_stack = {stacks + it.fiber * STACK + page, 0, STACK - page};
        makecontext(&fiber.context, run_fiber, 0);
        setcontext(&fiber.context);
    }
    inside = false;
    if (came_back == 2) return false;
    if (threads[current].wait == ENDED) {
        idle.push_back(threads[current].fiber);
        threads[current].fiber = -1;
    }
    return true;
}

uint64_t gathered(int first, unsigned mask, const Thread& it, const uint64_t* values) {
    if (it.gather == EXCHANGE) return it.source >= 0 && it.source < LANES && mask >> it.source & 1 ? values[it.source] : ~0ull;
    uint64_t all = it.gather == AND || it.gather == LEAST ? 0xffffffffu : it.gather == LEAST_SIGNED ? INT32_MAX : 0;
    if (it.gather == MOST_SIGNED) all = (uint64_t)INT32_MIN;
    for (int lane = 0; lane < LANES; lane++) {
        if (!(mask >> lane & 1)) continue;
        uint64_t value = values[lane];
        switch (it.gather) {
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
                that.value = gathered(first, here, that, values);
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
        say(" waits on line %d for lanes %#x of its warp, which never all come", threads[in_warp].line, threads[in_warp].mask);
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

bool run_block() {
    shared_arrays.clear();
    for (int thread = 0; thread < count; thread++) threads[thread] = {RUNS, -1};
    for (;;) {
        for (turn = 0; turn < count; turn++) {
            int thread = in_turn(turn);
            if (threads[thread].wait == RUNS && !resume(thread)) return false;
        }
        if (first_that(AT_BARRIER) < 0 && first_that(AT_WARP) < 0) return true;
        if (!release_warps() && !release_barrier()) return false;
    }
}

size_t rounded(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

// Memory that ends, but for its alignment, where no memory is; around it lies what must not be changed.
char* place(size_t bytes, int tensor) {
    size_t room = rounded(rounded(bytes, 16) + MARGIN, (size_t)page);
    char* map = (char*)mmap(nullptr, room + 2 * GUARD, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED || mprotect(map + GUARD, room, PROT_READ | PROT_WRITE)) return nullptr;
    char* placed = map + GUARD + room - rounded(bytes, 16);
    memset(placed, POISON, bytes);
    for (char* at = placed - MARGIN; at < placed; at++) *at = (char)around(at, tensor);
    for (char* at = placed + bytes; at < placed + rounded(bytes, 16); at++) *at = (char)around(at, tensor);
    return placed;
}

void remove(char* placed, size_t bytes) {
    size_t room = rounded(rounded(bytes, 16) + MARGIN, (size_t)page);
    munmap(placed + rounded(bytes, 16) - room - GUARD, room + 2 * GUARD);
}

bool untouched(const char* from, const char* to, int tensor) {
    while (from < to && (unsigned char)*from == around(from, tensor)) from++;
    return from == to;
}

void say_near(const char* address) {
    for (int index = 0; index < storage_count; index++) {
        const Storage& it = storages[index];
        const char* end = it.placed + it.bytes;
        if (address < it.placed - GUARD || address >= end + GUARD) continue;
        bool before = address < it.placed;
        say(", %ld bytes %s of argument %d", (long)(before ? it.placed - address : address - end),
            before ? "before the tensor" : "behind the tensor's end", it.argument);
        return;
    }
    if (dynamic_shared && address >= dynamic_shared - GUARD && address < dynamic_shared + 2 * GUARD) say(", near its shared memory");
}

void on_fault(int signal, siginfo_t* info, void*) {
    if (!inside) {
        ::signal(signal, SIG_DFL);  // not ours: it happens again
        return;
    }
    say_where(current);
    say(signal == SIGFPE ? " divides by zero" : " reads or writes where no memory is");
    if (signal != SIGFPE) say_near((const char*)info->si_addr);
    give_up();
}

bool run_blocks() {
    uint64_t total = (uint64_t)gridDim.x * gridDim.y * gridDim.z;
    for (uint64_t turn = 0; turn < total; turn++) {
        uint64_t block = backward ? total - 1 - turn : turn;
        blockIdx = {(unsigned)(block % gridDim.x), (unsigned)(block / gridDim.x % gridDim.y), (unsigned)(block / gridDim.x / gridDim.y)};
        if (!run_block()) return false;
    }
    return true;
}

bool run_caught() {
    const int caught[] = {SIGSEGV, SIGBUS, SIGFPE};
    struct sigaction ours = {}, before[3];
    stack_t stack = {alternate, 0, sizeof(alternate)}, stack_before;
    ours.sa_sigaction = on_fault;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    sigaltstack(&stack, &stack_before);
    for (int i = 0; i < 3; i++) sigaction(caught[i], &ours, &before[i]);
    bool ran = run_blocks();
    for (int i = 0; i < 3; i++) sigaction(caught[i], &before[i], nullptr);
    if (stack_before.ss_flags & SS_DISABLE) stack_before.ss_size = MINSIGSTKSZ;
    sigaltstack(&stack_before, nullptr);
    return ran;
}
}  // namespace

extern "C" {
int gpulab_barrier(int predicate, int line, int* all) {
    threads[current].predicate = predicate, threads[current].line = line;
    wait(AT_BARRIER);
    uint64_t value = threads[current].value;
    if (all) *all = (int)(value & 1);
    return (int)(value >> 1);
}

uint64_t gpulab_warp(unsigned mask, int gather, uint64_t value, int source, int line) {
    Thread& it = threads[current];
    it.mask = mask, it.gather = gather, it.value = value, it.source = source, it.line = line;
    if (!(mask >> current % LANES & 1)) {
        say_where(current);
        say(" is not in the mask %#x of line %d", mask, line);
        give_up();
    }
    wait(AT_WARP);
    return threads[current].value;
}

int gpulab_lane() { return current % LANES; }

unsigned gpulab_active() {
    unsigned mask = 0;
    for (int thread = current / LANES * LANES; thread < std::min(count, (current / LANES + 1) * LANES); thread++)
        mask |= (unsigned)(threads[thread].wait != ENDED) << thread % LANES;
    return mask;
}

// The first thread of a block that comes to an array of shared memory finds nothing of the block before.
void gpulab_shared(void* array, uint64_t bytes) {
    for (auto& [known, size] : shared_arrays)
        if (known == array) return;
    shared_arrays.push_back({array, bytes});
    memset(array, POISON, bytes);
}

void* gpulab_dynamic_shared() { return dynamic_shared; }

void gpulab_misaligned(const void* address, uint64_t alignment, int line) {
    say_where(current);
    say(" reads or writes %llu bytes at once on line %d, at an address that is no multiple of that", (unsigned long long)alignment, line);
    give_up();
}

void gpulab_trap(int line) {
    say_where(current);
    say(" trapped on line %d", line);
    give_up();
}

// What g++ -fsanitize=alignment,bounds,integer-divide-by-zero calls.
struct Place { const char* file; uint32_t line, column; };
struct Type { uint16_t kind, info; char name[]; };
struct Mismatch { Place place; Type* type; unsigned char log_alignment, kind; };
struct Bounds { Place place; Type *array, *index; };

void __ubsan_handle_type_mismatch_v1(Mismatch* data, void* address) {
    gpulab_misaligned(address, 1ull << data->log_alignment, (int)data->place.line);
}

void __ubsan_handle_out_of_bounds(Bounds* data, void* index) {
    say_where(current);
    say(" takes element %ld of an array of %s on line %u", (long)(intptr_t)index, data->array->name, data->place.line);
    give_up();
}

void __ubsan_handle_divrem_overflow(Place* place, void*, void*) {
    say_where(current);
    say(" divides by zero on line %u", place->line);
    give_up();
}

// What went wrong, or nothing. `offsets` of the arguments that lie in `storages`, of which `of` has the number, or -1.
const char* gpulab_launch(void (*(*bind)(const uint64_t*))(), const unsigned* grid, const unsigned* block, uint64_t shared_bytes,
                          Storage* given, int given_count, const int* of, uint64_t* values, int value_count, int last_first) {
    message[0] = 0;
    backward = last_first;
    storages = given, storage_count = given_count;
    gridDim = {grid[0], grid[1], grid[2]}, blockDim = {block[0], block[1], block[2]};
    count = (int)(block[0] * block[1] * block[2]);
    if (!stacks) {
        stacks = (char*)mmap(nullptr, MOST_THREADS * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        for (int i = 0; i < MOST_THREADS; i++) mprotect(stacks + i * STACK, (size_t)page, PROT_NONE);
        for (int i = MOST_THREADS; i-- > 0;) idle.push_back(i);
    }
    for (int i = 0; i < storage_count; i++) {
        storages[i].placed = place(storages[i].bytes, i);
        memcpy(storages[i].placed, storages[i].data, storages[i].bytes);
    }
    for (int i = 0; i < value_count; i++) {
        if (of[i] >= 0) values[i] += (uint64_t)storages[of[i]].placed;
    }
    dynamic_shared = shared_bytes ? place(shared_bytes, -1) : nullptr;
    run_thread = bind(values);
    if (!run_caught()) {
        idle.clear();
        for (int i = MOST_THREADS; i-- > 0;) idle.push_back(i), fibers[i].started = false;
    }
    for (int i = 0; i < storage_count; i++) {
        Storage& it = storages[i];
        char* end = it.placed + it.bytes;
        if (!message[0] && !untouched(it.placed - MARGIN, it.placed, i)) say("writes before the tensor of argument %d", it.argument);
        if (!message[0] && !untouched(end, it.placed + rounded(it.bytes, 16), i)) say("writes behind the end of the tensor of argument %d", it.argument);
        memcpy(it.data, it.placed, it.bytes);
        remove(it.placed, it.bytes);
    }
    if (dynamic_shared) remove(dynamic_shared, shared_bytes), dynamic_shared = nullptr;
    return message;
}
}
